"""What the dispatches of a module need together."""

from __future__ import annotations

from eyas.codegen.common.needs import union_of_needs


def test_of_numbers_the_largest_counts() -> None:
    needs = ["threads=64", "f16", "threads=256", "threads=128", "spirv=1.3", "spirv=1.6", "f16", "shared-bytes=9000"]
    assert union_of_needs(needs) == ("f16", "shared-bytes=9000", "spirv=1.6", "threads=256")
    assert union_of_needs(["shared-bytes=9000", "shared-bytes=10000"]) == ("shared-bytes=10000",)


def test_what_is_no_minimum_stays_as_it_is() -> None:
    needs = ["subgroup=8", "offset-alignment=16", "avx2", "matrix:f16:f32:16x16x16"]
    assert union_of_needs(needs) == ("avx2", "matrix:f16:f32:16x16x16", "offset-alignment=16", "subgroup=8")
    assert union_of_needs([]) == ()
