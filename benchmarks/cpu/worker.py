"""One engine and one model in a process of their own: opens, answers once, then times runs whenever it is asked.

Its arguments are a module with `ENGINES`, the engine, the model, a folder and the number of threads. Speaks JSON lines:
`{"runs": n}` in, `{"ms": [...]}` out; the first two lines out say how opening and the first run went.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path

from benchmarks import models as cases
from benchmarks.cpu.models import EXPECTED_FILE, load_arrays


def main() -> None:
    suite, engine, name, folder, threads = *sys.argv[1:4], Path(sys.argv[4]), int(sys.argv[5])
    # Engines print what they like; only our own lines may reach the pipe.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    begin = time.perf_counter()
    try:
        session = importlib.import_module(suite).ENGINES[engine].open(name, folder, threads)
        print(json.dumps({"version": session.version}), file=out)
        results = session.results(session.call())
        ready_s = time.perf_counter() - begin
        error = cases.relative_error(list(results), load_arrays(folder / EXPECTED_FILE))
    except BaseException as failure:
        traceback.print_exc()
        print(json.dumps({"failed": f"{type(failure).__name__}: {failure}"[:300]}), file=out)
        return
    print(json.dumps({"ready_s": ready_s, "error": error}), file=out)
    for line in sys.stdin:
        taken = []
        for _ in range(json.loads(line)["runs"]):
            begin = time.perf_counter()
            session.call()
            taken.append(1e3 * (time.perf_counter() - begin))
        print(json.dumps({"ms": taken}), file=out)


if __name__ == "__main__":
    main()
