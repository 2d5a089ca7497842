"""The `eyas` command: one file for each subcommand, thin, over the same Python API that users have.

In: a command line. Out: results on stdout, progress and errors on stderr, an exit code.
"""

from __future__ import annotations

import sys

from eyas.errors import EXTRA_OF, MissingPackageError


def main(arguments: list[str] | None = None) -> None:
    """Runs one command line and exits: what `eyas` starts. An installation without extras has no command yet."""
    try:
        from eyas.cli.app import main as run
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_OF:
            raise
        print(f"error: {MissingPackageError(error.name, 'the eyas command')}", file=sys.stderr)
        sys.exit(1)
    run(arguments)
