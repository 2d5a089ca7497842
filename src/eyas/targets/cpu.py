"""`CpuTarget`: a CPU that LLVM makes machine code for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from eyas.errors import TargetError
from eyas.targets import facts
from eyas.targets.target import DEFAULT_CORES, Caches, Target
from eyas.targets.text import CACHES, looks_like_options, parse_option, print_options, unknown

_VLENS = (128, 256, 512, 1024, 2048)
_OPTIONS = ("vlen", *CACHES, "cores")
"""In the order in which they are printed."""


@dataclass(frozen=True)
class CpuTarget(Target):
    """`llvm-cpu:ARCH[:CPU][:features and options]`; `llvm-cpu` alone means the machine that runs the compiler.

    Features are LLVM's names with a sign and change what the CPU model has by itself; options are `cores=16`,
    `vlen=256` (RISC-V vector length in bits) and `l1d=`, `l2=`, `l3=` (cache sizes such as `512K`).
    """

    arch: str
    cpu: str
    changes: tuple[str, ...] = ()
    """Signed features, in the order of the table in `facts.py`."""
    options: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def host() -> CpuTarget:
        """This machine, with the features that its operating system and hypervisor let programs use."""
        from eyas.targets.host import detect

        return detect()

    def __str__(self) -> str:
        parts = [self.backend, self.arch]
        if self.cpu != self._arch.default_cpu:
            parts.append(self.cpu)
        if details := [*self.changes, *print_options(self.options)]:
            parts.append(",".join(details))
        return ":".join(parts)

    @property
    def backend(self) -> str:
        return "llvm-cpu"

    @property
    def cores(self) -> int:
        return self._options.get("cores", DEFAULT_CORES)

    @cached_property
    def caches(self) -> Caches:
        given, model = self._options, self._model
        return Caches(given.get("l1d", model.l1d), given.get("l2", model.l2), given.get("l3", model.l3))

    @property
    def runs_here(self) -> bool:
        here = CpuTarget.host()
        return self.arch == here.arch and self.vlen <= here.vlen and self.feature_set <= here.feature_set

    @property
    def preference(self) -> int:
        # A CPU with all features of another has more of them.
        return 1 + len(self.required_features)

    # --- what LLVM needs ----------------------------------------------------------------------------------------------

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
        present = set(_closure(self._arch, self._model.features))
        for change in self.changes:
            if change[0] == "+":
                present |= _closure(self._arch, [change[1:]])
            else:
                present = {name for name in present if change[1:] not in _closure(self._arch, [name])}
        return frozenset(present)

    @property
    def vlen(self) -> int:
        """Guaranteed bits of a RISC-V vector register; 0 without the V extension and on other architectures."""
        if self.arch != "riscv64" or "v" not in self.feature_set:
            return 0
        return self._options.get("vlen", self._model.vlen or 128)

    @cached_property
    def vector_bits(self) -> int:
        """Width of the SIMD register that f32 kernels should use; 0 when there is none."""
        widths = [bits for feature, bits in self._arch.vector_widths if feature in self.feature_set]
        return max([*widths, self.vlen])

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
    def has_f16_arith(self) -> bool:
        return self._can("f16-arith")

    @property
    def has_bf16_dot(self) -> bool:
        return self._can("bf16-dot")

    @property
    def integer_dot(self) -> int:
        """How many products of bytes an instruction adds up to one i32; 1 where there is none."""
        if self._can("byte-dot"):
            return 4
        return 2 if self._can("pair-dot") and (self.vector_bits < 512 or "avx512bw" in self.feature_set) else 1

    @cached_property
    def required_features(self) -> tuple[str, ...]:
        required = sorted(self.feature_set - self._arch.baseline)
        return (*required, f"zvl{self.vlen}b") if self.vlen > 128 else tuple(required)

    @property
    def _arch(self) -> facts.Arch:
        return facts.ARCHES[self.arch]

    @property
    def _model(self) -> facts.Cpu:
        return self._arch.cpus[self.cpu]

    @cached_property
    def _options(self) -> dict[str, int]:
        return dict(self.options)

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


def options_of(arch: str) -> list[str]:
    """Options that targets of an architecture take."""
    return [name for name in _OPTIONS if name != "vlen" or arch == "riscv64"]


def parse(text: str, rest: str) -> CpuTarget:
    """Reads what follows `llvm-cpu`; options without an architecture change what this machine is."""
    parts = rest.split(":") if text.partition(":")[1] else []
    if not parts or looks_like_options(parts[0]):
        base = CpuTarget.host()
    else:
        name = parts.pop(0)
        if name not in facts.ARCHES:
            raise unknown(text, "architecture", name, facts.ARCHES)
        base = CpuTarget(name, facts.ARCHES[name].default_cpu)
        if parts and not looks_like_options(parts[0]):
            cpu = parts.pop(0)
            if cpu not in facts.ARCHES[name].cpus:
                raise unknown(text, f"CPU of {name}", cpu, facts.ARCHES[name].cpus)
            base = CpuTarget(name, cpu)
    if len(parts) > 1:
        raise TargetError(
            f"target '{text}' has {len(parts) - 1} part(s) too many; the form is "
            "llvm-cpu:ARCH[:CPU][:+feature,-feature,option=value]"
        )
    return _changed(base, parts[0].split(",") if parts else [], text)


def _changed(base: CpuTarget, items: Iterable[str], text: str) -> CpuTarget:
    """A CPU with other features and options."""
    known = facts.ARCHES[base.arch].implies
    changes, options = {change[1:]: change for change in base.changes}, dict(base.options)
    for item in items:
        if item[:1] in ("+", "-"):
            if item[1:] not in known:
                raise unknown(text, f"feature of {base.arch}", item[1:], known)
            changes[item[1:]] = item
        else:
            name, value = parse_option(text, item, options_of(base.arch))
            if name == "vlen" and value not in _VLENS:
                raise TargetError(f"target '{text}': vlen is '{value}'; allowed: {', '.join(map(str, _VLENS))}")
            options[name] = value
    order = list(known)
    return CpuTarget(
        base.arch,
        base.cpu,
        tuple(changes[name] for name in sorted(changes, key=order.index)),
        tuple((name, options[name]) for name in _OPTIONS if name in options),
    )
