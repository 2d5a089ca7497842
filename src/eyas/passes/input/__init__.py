"""The input phase: what frontends import enters; a program in the input contract leaves."""
