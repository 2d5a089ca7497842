"""`python -m eyas` is the `eyas` command."""

from eyas.cli import main

main()
