"""Tests compile what they test: nothing from the user's cache. Those of the cache have folders of their own."""

import os

import pytest
from tests.tools import frameworks, vulkan

os.environ["EYAS_CACHE"] = "off"
vulkan.switch_validation_on()


@pytest.fixture(autouse=True)
def valid_use_of_vulkan(request: pytest.FixtureRequest):
    """A test fails if the validation layer says anything about what was done in it."""
    before = vulkan.messages()
    yield
    count = vulkan.messages() - before
    if count and "messages_expected" not in request.fixturenames:
        pytest.fail(f"{count} messages of Vulkan's validation layer; they are in what stderr got")


@pytest.fixture
def messages_expected():
    """For the test that shows that messages are seen."""


@pytest.fixture
def vulkan_device():
    """The first Vulkan device; the test is skipped where there is none."""
    return vulkan.device()


def pytest_sessionstart(session: pytest.Session) -> None:
    if frameworks.required() and (lacking := frameworks.missing()):
        pytest.exit(frameworks.complaint(lacking), returncode=pytest.ExitCode.TESTS_FAILED)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    return _fail_without_package((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    return _fail_without_package((yield))


def _fail_without_package(report):
    """A package that is there and cannot be imported is no reason to skip where all are required."""
    if frameworks.required() and report.skipped and "could not import" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"EYAS_TEST_REQUIRE=all: {report.longrepr[2]}"
    return report
