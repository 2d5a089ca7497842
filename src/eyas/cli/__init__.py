"""The `eyas` command: one file for each subcommand, thin, over the same Python API that users have.

In: a command line. Out: results on stdout, progress and errors on stderr, an exit code.
"""
