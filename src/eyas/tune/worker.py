"""`python -m eyas.tune.worker`: the process in which candidates are compiled, and which may die of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eyas.codegen.jobs import Job
from eyas.codegen.planted import die_if_planted
from eyas.codegen.worker import serve
from eyas.errors import EyasError, InternalError
from eyas.tune.making import Maker, Small


@dataclass(frozen=True)
class Order:
    """A small program and the schedule that it is compiled with; None is the default."""

    small: Small = field(repr=False)
    schedule: str | None


def main() -> None:
    maker = Maker()

    def answer(order: Order) -> Any:
        small = order.small
        # Deaths for tests name the dispatch or a part of the schedule.
        die_if_planted(Job(f"{small.name} {order.schedule or ''}", b"", small.target))
        try:
            return maker.make(small, order.schedule)
        except EyasError as error:
            return error
        except MemoryError:
            raise
        except Exception as error:
            return InternalError(f"compiling '{small.name}' failed: {type(error).__name__}: {error}")

    serve(answer, lambda: None)


if __name__ == "__main__":
    main()
