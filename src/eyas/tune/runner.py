"""A process that runs candidates, and may die of one: `python -m eyas.tune.runner DEVICE THREADS`, and its owner.

One for each device: several run side by side, and each compares with its own baseline.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyas.codegen.children import Child, ChildDied
from eyas.codegen.worker import serve
from eyas.errors import EyasError, InternalError
from eyas.runtime import Device
from eyas.runtime.device import DEFAULT, place_of
from eyas.tune.making import Made
from eyas.tune.running import Operands, Runner
from eyas.tune.trials import Status

_CPU_S = 3600.0
"""What counts is the clock: threads of a device that wait take processor time, too."""
CHECK_S, SAMPLE_S, LEARN_S = 60.0, 60.0, 600.0


@dataclass(frozen=True)
class Request:
    """A method of the process's `Runner`, and what it is given."""

    method: str
    arguments: tuple[Any, ...]


class RunnerDied(Exception):
    """What was run ended the process, or did not end in its time."""

    def __init__(self, status: Status, reason: str, said: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.said = status, reason, said


def main() -> None:
    name, threads = sys.argv[1], int(sys.argv[2])
    driver, index = place_of(name or DEFAULT)
    runner = Runner(Device(driver, index=index, threads=threads or None))

    def answer(request: Request) -> Any:
        try:
            return getattr(runner, request.method)(*request.arguments)
        except EyasError as error:
            return error
        except MemoryError:
            raise
        except Exception as error:
            return InternalError(f"{request.method}: {type(error).__name__}: {error}")

    serve(answer, lambda: None, limit_memory=False)


class RunnerProcess:
    """A `Runner` in a process of its own, which is started again when something ended it: with the same operands, the
    same numbers to compare with, and the modules that were loaded to stay."""

    def __init__(self, device: str = DEFAULT, threads: int | None = None, label: str = "") -> None:
        self.device, self.threads = device, threads
        self.label = label or device
        """What the device is called where other machines have devices, too."""
        self._child: Child | None = None
        self._operands: Operands | None = None
        self._plain: Made | None = None
        self._stays: dict[str, Made] = {}

    def __enter__(self) -> RunnerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def open(self, operands: Operands, plain: Made) -> None:
        """What is run on from now on, and the plain loops that tell what is right."""
        self._operands, self._plain, self._stays = operands, plain, {}
        self._ask("open", (operands,), LEARN_S)
        self._ask("learn", (plain,), LEARN_S)

    def load(self, name: str, made: Made, stays: bool = False) -> None:
        if stays:
            self._stays[name] = made
        self._ask("load", (name, made), CHECK_S)

    def drop(self, name: str) -> None:
        self._stays.pop(name, None)
        self._ask("drop", (name,), CHECK_S)

    def check(self, name: str, most_us: float = float("inf")) -> tuple[int, str] | float | None:
        return self._ask("check", (name, most_us), CHECK_S)

    def evidence(self, number: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return self._ask("evidence", (number,), CHECK_S)

    def sample(self, names: Sequence[str], turns: int, seconds: float = 10.0) -> dict[str, list[float]]:
        return self._ask("sample", (list(names), turns, seconds), SAMPLE_S)

    def calls(self, name: str, count: int) -> list[float]:
        return self._ask("calls", (name, count), SAMPLE_S)

    def others(self) -> float:
        return self._ask("others", (), CHECK_S)

    def _ask(self, method: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        child = self._started()
        try:
            answer, _ = child.ask(Request(method, arguments), _CPU_S, seconds)
        except ChildDied as died:
            self.close()
            status = Status.TIMEOUT if "took more than" in died.death.cause else Status.CRASHED
            raise RunnerDied(status, f"running it: {died.death.cause}", died.death.said) from None
        except BaseException:  # Ctrl-C: whatever it still answers is for nobody
            self.close()
            raise
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _started(self) -> Child:
        if self._child is None:
            self._child = Child(self.device, str(self.threads or 0), program="eyas.tune.runner")
            if self._operands is not None and self._plain is not None:
                self._ask("open", (self._operands,), LEARN_S)
                self._ask("learn", (self._plain,), LEARN_S)
                for name, made in self._stays.items():
                    self._ask("load", (name, made), CHECK_S)
        return self._child


if __name__ == "__main__":
    main()
