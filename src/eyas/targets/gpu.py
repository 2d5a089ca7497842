"""`GpuTarget`: a GPU as data: a profile of `gpu_facts.py`, and what differs from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from eyas.errors import TargetError
from eyas.targets.gpu_facts import FEATURES, GPUS, Gpu, MatrixShape, is_feature
from eyas.targets.target import Caches, Limits, Target
from eyas.targets.text import looks_like_options, parse_option, print_options, unknown

OPTIONS = (
    "spirv", "subgroup", "threads", "shared", "push", "bindings", "alignment", "range", "grid", "iterations", "cores"
)  # fmt: skip
"""Numbers of a `Gpu` that a target's text may change, in the order in which they are printed."""
_SPIRV = tuple(f"1.{minor}" for minor in range(3, 7))

# What the driver binds beside a dispatch's buffers: scratch memory, the error word, constants that fit nowhere else.
_DRIVER_BINDINGS = 3
# What a dispatch may always bind: a buffer to read and one to write.
_LEAST_BINDINGS = 2
_MOST_BINDINGS = 256  # of the executable format
_OTHER_GRID = 65_535  # workgroups along the second and third axis, everywhere
# Of shared memory, for what kernels pass between subgroups while they reduce.
_RESERVED_BYTES = 1024
# So many hide how long memory takes to answer.
_THREADS_PER_CORE = 1024


@dataclass(frozen=True)
class GpuTarget(Target):
    """`vulkan:PROFILE[:+feature,-feature,option=value]` or `cuda[:sm_90a]`; `vulkan` alone means the device here.

    Features are named in `gpu_facts.FEATURES`, or are shapes of matrices (`+matrix:f16:f32:16x16x16`); options are
    numbers of `Gpu`: `subgroup=16`, `shared=64K`, `spirv=1.5`. Those that make no difference are left out, so that
    equal machines have equal text.
    """

    interface: str
    profile: str
    changes: tuple[str, ...] = ()
    """Signed features, in the order of `FEATURES`, then shapes of matrices."""
    options: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        options = {name: value for name, value in self.options if name != "spirv"}
        version = [f"spirv={self.spirv_version}"] if "spirv" in dict(self.options) else []
        details = [*self.changes, *version, *print_options(options)]
        return ":".join([self.interface, self.profile, *([",".join(details)] if details else [])])

    @cached_property
    def facts(self) -> Gpu:
        """The profile's, with what differs."""
        base = GPUS[self.interface][self.profile]
        features = base.features | {one[1:] for one in self.changes if one[0] == "+"}
        features -= {one[1:] for one in self.changes if one[0] == "-"}
        return replace(base, features=features, **dict(self.options))

    @property
    def backend(self) -> str:
        return self.interface

    @property
    def cores(self) -> int:
        return self.facts.cores

    @cached_property
    def caches(self) -> Caches:
        return Caches(self.facts.l1, self.facts.l2, 0)

    @cached_property
    def limits(self) -> Limits:  # type: ignore[override]
        """What one dispatch may ask for, after what the driver binds for itself."""
        facts = self.facts
        bindings = max(_LEAST_BINDINGS, min(facts.bindings - _DRIVER_BINDINGS, _MOST_BINDINGS))
        return Limits(bindings, facts.push, (facts.grid, _OTHER_GRID, _OTHER_GRID), facts.alignment, facts.range)

    @property
    def workgroup_bytes(self) -> int:
        return max(0, self.facts.shared - _RESERVED_BYTES)

    @property
    def wanted_threads(self) -> int:
        return self.cores * _THREADS_PER_CORE if self.facts.shared_is_near else 0

    @property
    def reads_rows_again(self) -> bool:
        return True

    @property
    def runs_here(self) -> bool:
        from eyas.targets.gpu_device import targets_here

        return any(here.covers(self) for here in targets_here(self.interface))

    @property
    def required_features(self) -> tuple[str, ...]:
        # Offsets are chosen for the whole program; what a kernel needs on top of it, it says itself.
        return (f"offset-alignment={self.facts.alignment}",)

    @property
    def preference(self) -> int:
        # A device runs either GPU code or CPU code; among profiles the richer one is for fewer devices.
        return 1 + len(self.facts.features)

    # --- what codegen asks --------------------------------------------------------------------------------------------

    @property
    def subgroup(self) -> int:
        """Threads that run in step; 1 where it is not known."""
        return self.facts.subgroup

    @property
    def max_threads(self) -> int:
        """Of one workgroup; along its third axis at most 64."""
        return self.facts.threads

    @property
    def max_iterations(self) -> int:
        """How often one thread may go round, all its loops together."""
        return self.facts.iterations

    @property
    def shared_bytes(self) -> int:
        """Memory that the threads of one workgroup share."""
        return self.facts.shared

    @property
    def spirv_version(self) -> str:
        return f"1.{self.facts.spirv}"

    @cached_property
    def matrix_shapes(self) -> tuple[MatrixShape, ...]:
        """Matrix instructions of a subgroup, sorted."""
        return tuple(sorted(shape for name in self.facts.features if (shape := MatrixShape.parse(name))))

    def has(self, feature: str) -> bool:
        """Whether every device of this target has a feature, in the words of a module's needs: `f16`, `threads=256`."""
        name, equals, value = feature.partition("=")
        facts = self.facts
        if not equals:
            assert is_feature(name), f"'{feature}' is not a feature"
            return name in facts.features
        if name == "spirv":
            return _SPIRV.index(value) <= _SPIRV.index(self.spirv_version)
        number = int(value)
        if name == "subgroup":
            return facts.subgroup == number
        if name == "offset-alignment":
            return number % facts.alignment == 0
        most = {"shared-bytes": facts.shared, "threads": facts.threads, "push-bytes": facts.push}
        return number <= (most | {"bindings": facts.bindings})[name]

    def covers(self, other: GpuTarget) -> bool:
        """Whether a device of this target has all that one of the other has."""
        mine, its = self.facts, other.facts
        larger = all(getattr(mine, name) >= getattr(its, name) for name in ("threads", "shared", "push", "bindings"))
        return (
            self.interface == other.interface and larger and its.features <= mine.features
            and mine.spirv >= its.spirv and its.subgroup in (1, mine.subgroup) and its.alignment % mine.alignment == 0
        )  # fmt: skip


def parse(text: str, rest: str) -> GpuTarget:
    """Reads what follows `vulkan` or `cuda`; options without a profile change what the device of this machine is."""
    backend = text.partition(":")[0]
    profiles = GPUS[backend]
    profile, _, details = ("", "", rest) if looks_like_options(rest.partition(":")[0]) else rest.partition(":")
    if profile and profile not in profiles:
        raise unknown(text, "profile", profile, profiles)
    if details and not looks_like_options(details):
        raise TargetError(
            f"target '{text}': '{details}' is neither a feature nor an option; "
            f"the form is {backend}[:PROFILE][:+feature,-feature,option=value]"
        )
    base = GpuTarget(backend, profile) if profile else _default(backend, text)
    return changed(base, details.split(",") if details else [], text)


def _default(backend: str, text: str) -> GpuTarget:
    """What a backend's name alone means."""
    if backend != "vulkan":
        return GpuTarget(backend, list(GPUS[backend])[-1])
    from eyas.targets.gpu_device import target_here

    return target_here(text)


def changed(base: GpuTarget, items: Iterable[str], text: str) -> GpuTarget:
    """A GPU with other features and numbers."""
    plain = GPUS[base.interface][base.profile]
    features, options = set(base.facts.features), dict(base.options)
    for item in items:
        if item[:1] in ("+", "-"):
            if not is_feature(item[1:]):
                raise unknown(text, "feature", item[1:], [*FEATURES, "matrix:f16:f32:16x16x16 and the like"])
            (features.add if item[0] == "+" else features.discard)(item[1:])
        else:
            name, value = _parse_number(text, item)
            options[name] = value
    changes = [f"-{name}" for name in plain.features - features] + [f"+{name}" for name in features - plain.features]
    order = list(FEATURES)
    changes.sort(key=lambda one: (order.index(one[1:]) if one[1:] in FEATURES else len(order), one[1:]))
    kept = (
        (name, options[name]) for name in OPTIONS if options.get(name, getattr(plain, name)) != getattr(plain, name)
    )
    return GpuTarget(base.interface, base.profile, tuple(changes), tuple(kept))


def _parse_number(text: str, item: str) -> tuple[str, int]:
    name, _, value = item.partition("=")
    if name == "spirv":
        if value not in _SPIRV:
            raise TargetError(f"target '{text}': spirv is '{value}'; allowed: {', '.join(_SPIRV)}")
        return name, int(value[2:])
    name, number = parse_option(text, item, OPTIONS, most=2**31 - 1)
    if name in ("alignment", "subgroup") and number & (number - 1):
        raise TargetError(f"target '{text}': {name} is '{value}'; give a power of two")
    return name, number
