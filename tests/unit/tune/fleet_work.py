"""What workers of fleets do in tests."""

from __future__ import annotations

import os
import signal
import time
from typing import Any


class Worker:
    """Does what its task says. `slowness` is that of its device, which its baseline shares."""

    def __init__(self, slowness: float = 1.0) -> None:
        self.slowness, self.done = slowness, 0

    def __call__(self, task: Any) -> Any:
        self.done += 1
        match task:
            case ("die", how):
                os.kill(os.getpid(), signal.SIGKILL) if how == "killed" else os._exit(3)
            case ("raise", text):
                raise ValueError(text)
            case ("sleep", seconds):
                time.sleep(seconds)
            case ("time", us):
                # A device that is half as fast takes twice as long for both.
                slow = self.slowness * (1 + os.getpid() % 7)
                return {"us": us * slow, "baseline_us": 100.0 * slow, "device": f"{os.uname().nodename}-{os.getpid()}"}
        return os.getpid(), self.done, task


def make(slowness: float = 1.0) -> Worker:
    return Worker(slowness)


def make_nothing() -> Worker:
    raise RuntimeError("there is no such device")
