"""The `eyas` command: its subcommands, and what becomes of errors.

Exit codes: 0 fine, 1 the user's input, 2 usage, 70 our bug (a reproducer is saved), 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import eyas
from eyas.cli import bench, cache, compile, devices, explain, inspect, opt, run, targets, tune, verify, version
from eyas.errors import EXTRA_OF, EyasError, MissingPackageError

app = typer.Typer(
    name="eyas",
    help="Compile machine-learning models and run them.",
    epilog="Try `eyas compile model.onnx -o model.eyas`, then `eyas run model.eyas`; `eyas COMMAND -h` says more.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: importing rich would double the time of `eyas --help`
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (compile, run, bench, explain, verify, tune, inspect, opt, targets, devices, cache, version):
    app.command(command.NAME)(command.command)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"eyas {eyas.__version__}")
        raise typer.Exit()


@app.callback()
def _global_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; allowed anywhere.")] = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(arguments: list[str] | None = None) -> None:
    """Runs one command line and exits."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    try:
        app(arguments, prog_name="eyas")
    except KeyboardInterrupt:
        _exit("interrupted", 130)
    except BrokenPipeError:
        # Whoever read the output has seen enough (`eyas inspect | head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except EyasError as error:
        if debug:
            raise
        if error.exit_code == 70:
            _report_bug(error, arguments)
        _exit(f"error: {error}", error.exit_code)
    except Exception as error:
        if debug:
            raise
        if isinstance(error, ModuleNotFoundError) and error.name in EXTRA_OF:
            _exit(f"error: {MissingPackageError(error.name, 'this command')}", MissingPackageError.exit_code)
        _report_bug(error, arguments)


def _report_bug(error: BaseException, arguments: list[str]) -> None:
    from eyas.cli.reproducer import save

    text = " ".join(str(error).split()) or "no message"
    _exit(
        f"internal error: {type(error).__name__}: {text}\nThis is a bug in Eyas, not in your input. What is needed to"
        f" repeat it was saved in {save(error, arguments)}; please send it. `--debug` shows the traceback.",
        70,
    )


def _exit(message: str, code: int) -> None:
    print(message, file=sys.stderr)
    sys.exit(code)
