"""`Target`: one machine to compile for, as a frozen value that parses, prints, and answers what codegen asks."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from eyas.errors import TargetError
from eyas.targets import facts

DEFAULT_CORES = 16
"""What a target has that says nothing of cores: enough for a server's share and no burden on a laptop, whose workers
take more workgroups each. The machine that compiles counts its own."""

_SIZE_OPTIONS = ("l1d", "l2", "l3")
_VLENS = (128, 256, 512, 1024, 2048)
_RESERVED_DETAIL = {"vulkan": r"|spirv1\.[3-6]", "cuda": r"|sm_\d{2,3}[af]?"}


@dataclass(frozen=True)
class Caches:
    """Bytes of data cache: first and second level of one core, and the last level that cores share (0 when absent)."""

    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int


@dataclass(frozen=True)
class Target:
    """A machine: `backend[:arch[:cpu][:features and options]]`.

    `llvm-cpu` alone means the machine that runs the compiler. Features are LLVM's names with a sign and change what the
    CPU model has by itself; options are `vlen=256` (RISC-V vector length in bits) and `l1d=`, `l2=`, `l3=` (cache sizes
    such as `512K`). Equal targets print equal text, and `Target.parse(str(t)) == t`.
    """

    backend: str
    arch: str = ""
    cpu: str = ""
    changes: tuple[str, ...] = ()
    """Signed features, in the order of the table in `facts.py`."""
    options: tuple[tuple[str, int], ...] = ()

    # --- text ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def parse(text: str | Target) -> Target:
        """Reads a target; raises TargetError that names the part, what is allowed, and the nearest match."""
        return text if isinstance(text, Target) else _parse(text)

    @staticmethod
    def host() -> Target:
        """This machine, with the features that its operating system and hypervisor let programs use."""
        from eyas.targets.host import detect

        return detect()

    def __str__(self) -> str:
        if not self.is_cpu:
            return self.backend + (f":{self.arch}" if self.arch else "")
        parts = [self.backend, self.arch]
        if self.cpu != self._arch.default_cpu:
            parts.append(self.cpu)
        details = list(self.changes)
        details += [f"{name}={value if name == 'vlen' else _print_size(value)}" for name, value in self.options]
        if details:
            parts.append(",".join(details))
        return ":".join(parts)

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that change exactly when the target's text does; for cache keys."""
        return hashlib.sha256(str(self).encode()).hexdigest()[:16]

    def check_supported(self) -> None:
        """Refuses names that are reserved for targets to come."""
        _ = self._arch

    # --- what LLVM needs ----------------------------------------------------------------------------------------------

    @property
    def is_cpu(self) -> bool:
        """Whether LLVM makes machine code for it."""
        return self.backend == "llvm-cpu"

    @property
    def runs_here(self) -> bool:
        """Whether this machine is the target, or one of all those that it is made for."""
        return not self.is_cpu or self == Target.host()

    @property
    def triple(self) -> str:
        return self._arch.triple

    @property
    def abi(self) -> str:
        """Name of the calling convention where the architecture has several, else empty."""
        return self._arch.abi

    @property
    def elf_machine(self) -> int:
        return self._arch.elf_machine

    @cached_property
    def features(self) -> str:
        """The feature string for LLVM's target machine, on top of `cpu`."""
        parts = [self._arch.llvm_extra, *self.changes]
        if self.vlen:
            parts.append(f"+zvl{self.vlen}b")
        return ",".join(filter(None, parts))

    # --- what codegen asks --------------------------------------------------------------------------------------------

    @cached_property
    def feature_set(self) -> frozenset[str]:
        """All features after the changes, closed under implication. For reports; codegen uses the properties below."""
        arch = self._arch
        present = set(_closure(arch, arch.cpus[self.cpu].features))
        for change in self.changes:
            if change[0] == "+":
                present |= _closure(arch, [change[1:]])
            else:
                present = {name for name in present if change[1:] not in _closure(arch, [name])}
        return frozenset(present)

    @property
    def vlen(self) -> int:
        """Guaranteed bits of a RISC-V vector register; 0 without the V extension and on other architectures."""
        if self.arch != "riscv64" or "v" not in self.feature_set:
            return 0
        return dict(self.options).get("vlen", self._arch.cpus[self.cpu].vlen or 128)

    @cached_property
    def vector_bits(self) -> int:
        """Width of the SIMD register that f32 kernels should use; 0 when there is none."""
        widths = [bits for feature, bits in self._arch.vector_widths if feature in self.feature_set]
        return max([*widths, self.vlen])

    @cached_property
    def cores(self) -> int:
        """How many workgroups can run at the same moment."""
        return len(os.sched_getaffinity(0)) if self.is_cpu and self == Target.host() else DEFAULT_CORES

    def lanes(self, element_bits: int = 32) -> int:
        """How many elements one vector register holds; at least 1."""
        return max(1, self.vector_bits // element_bits)

    @cached_property
    def vector_registers(self) -> int:
        """How many vector registers a kernel may keep live."""
        table = self._arch.vector_registers
        return next((count for feature, count in table if feature in self.feature_set), table[-1][1])

    @property
    def has_fma(self) -> bool:
        return self._can("fma")

    @property
    def has_cheap_masks(self) -> bool:
        """Whether a masked vector load or store of any element size costs about as much as a plain one."""
        return self._can("cheap-masks")

    @property
    def has_gather(self) -> bool:
        return self._can("gather")

    @property
    def has_f16_convert(self) -> bool:
        """Whether f16 <-> f32 is an instruction (otherwise bit arithmetic or a library call)."""
        return self._can("f16-convert")

    @property
    def has_f16_arith(self) -> bool:
        return self._can("f16-arith")

    @property
    def has_bf16_dot(self) -> bool:
        return self._can("bf16-dot")

    @property
    def has_i8_dot(self) -> bool:
        return self._can("i8-dot")

    @cached_property
    def caches(self) -> Caches:
        cpu, given = self._arch.cpus[self.cpu], dict(self.options)
        return Caches(given.get("l1d", cpu.l1d), given.get("l2", cpu.l2), given.get("l3", cpu.l3))

    @cached_property
    def required_features(self) -> tuple[str, ...]:
        """Sorted features that the runtime must find on a machine before it runs code made for this target."""
        required = sorted(self.feature_set - self._arch.baseline)
        return (*required, f"zvl{self.vlen}b") if self.vlen > 128 else tuple(required)

    @property
    def _arch(self) -> facts.Arch:
        if self.backend == "vmvx":
            return facts.PORTABLE
        if not self.is_cpu:
            what = facts.RESERVED_BACKENDS[self.backend]
            raise TargetError(
                f"target '{self}' ({what}) is a reserved name: Eyas does not compile for it yet; use llvm-cpu or vmvx"
            )
        return facts.ARCHES[self.arch]

    def _can(self, capability: str) -> bool:
        return not self.feature_set.isdisjoint(self._arch.capabilities.get(capability, ()))


def _closure(arch: facts.Arch, names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += arch.implies[name]
    return seen


@lru_cache(maxsize=256)
def _parse(text: str) -> Target:
    backend, *rest = text.strip().split(":")
    if backend in facts.RESERVED_BACKENDS:
        detail = ":".join(rest)
        if not re.fullmatch(_RESERVED_DETAIL[backend], detail):
            raise TargetError(f"target '{text}': '{detail}' is not known; {facts.RESERVED_BACKENDS[backend]}")
        return Target(backend, detail)
    if backend == "vmvx":
        if rest:
            raise TargetError(f"target '{text}': vmvx is the same for every machine and takes nothing after its name")
        return Target(backend)
    if backend != "llvm-cpu":
        raise _unknown(text, "backend", backend, ["llvm-cpu", "vmvx", *facts.RESERVED_BACKENDS])
    if not rest:
        return Target.host()
    arch_name, *rest = rest
    if arch_name not in facts.ARCHES:
        raise _unknown(text, "architecture", arch_name, facts.ARCHES)
    arch, cpu = facts.ARCHES[arch_name], facts.ARCHES[arch_name].default_cpu
    if rest and not _looks_like_details(rest[0]):
        cpu, *rest = rest
        if cpu not in arch.cpus:
            raise _unknown(text, f"CPU of {arch_name}", cpu, arch.cpus)
    if len(rest) > 1:
        raise TargetError(
            f"target '{text}' has {len(rest) - 1} part(s) too many; the form is "
            "llvm-cpu:ARCH[:CPU][:+feature,-feature,option=value]"
        )
    changes: dict[str, str] = {}
    options: dict[str, int] = {}
    for item in rest[0].split(",") if rest else ():
        if item[:1] in ("+", "-"):
            if item[1:] not in arch.implies:
                raise _unknown(text, f"feature of {arch_name}", item[1:], arch.implies)
            changes[item[1:]] = item
        else:
            name, value = _parse_option(text, item, arch_name)
            options[name] = value
    order = list(arch.implies)
    return Target(
        "llvm-cpu",
        arch_name,
        cpu,
        tuple(changes[name] for name in sorted(changes, key=order.index)),
        tuple((name, options[name]) for name in ("vlen", *_SIZE_OPTIONS) if name in options),
    )


def _looks_like_details(part: str) -> bool:
    return part[:1] in ("+", "-") or "=" in part


def _parse_option(text: str, item: str, arch_name: str) -> tuple[str, int]:
    name, _, value = item.partition("=")
    allowed = ([] if arch_name != "riscv64" else ["vlen"]) + list(_SIZE_OPTIONS)
    if name not in allowed:
        raise _unknown(text, "option", name, [f"{one}=..." for one in allowed])
    if name == "vlen":
        if value not in map(str, _VLENS):
            raise TargetError(f"target '{text}': vlen is '{value}'; allowed: {', '.join(map(str, _VLENS))}")
        return name, int(value)
    size = re.fullmatch(r"(\d+)([KM]?)", value)
    if not size:
        raise TargetError(f"target '{text}': {name} is '{value}'; give bytes, or a number with K or M such as 512K")
    return name, int(size.group(1)) * {"": 1, "K": facts.KIB, "M": facts.MIB}[size.group(2)]


def _print_size(size: int) -> str:
    for suffix, unit in (("M", facts.MIB), ("K", facts.KIB)):
        if size and size % unit == 0:
            return f"{size // unit}{suffix}"
    return str(size)


def _unknown(text: str, what: str, seen: str, allowed: Iterable[str]) -> TargetError:
    names = list(allowed)
    nearest = difflib.get_close_matches(seen, names, n=1, cutoff=0.5)
    hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
    return TargetError(f"target '{text}': unknown {what} '{seen}'.{hint} Allowed: {', '.join(names)}")
