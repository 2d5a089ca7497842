"""`eyas verify`: a model and inputs enter; where the compiled program leaves the framework's numbers, and why, leaves.

`source.py` and one file per framework give reference values, layer by layer; `layers.py` compares; `bisect.py` names
the pass or strategy to blame; `reproducer.py` cuts the smallest piece that is still wrong out of the program.
"""
