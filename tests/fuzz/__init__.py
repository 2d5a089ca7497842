"""Differential fuzzing: random typed graphs through every frontend, against NumPy or eager torch under error bounds.

    graph.py        the graph as data, and its values for one call
    shadow.py       numbers with an error bound: what a result may be, and where rounding alone decides
    ops/            one table: how each op is drawn, evaluated, and written for torch, JAX and ONNX; in torch_*.py and
                    database.py (torch's own operator database) the reference is eager torch with moved operands
    strategies.py   hypothesis strategies for graphs and compile options
    lowering.py     graph -> model of a framework
    check.py        compiles, calls, compares
    checker.py      the same in a child process, so that an abort or a hang is an outcome
    bundles.py      several graphs as one program, which saves most of their time, and back when one fails
    campaign.py     thousands of graphs, shrinking, failures grouped by symptom

`python -m tests.fuzz --graphs 1000 --seed 7` runs it.
"""
