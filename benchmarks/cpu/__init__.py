"""Eyas beside the other engines on CPUs: a model and its inputs enter, medians, ratios, JSON and a chart leave.

Each engine runs in a process of its own. The processes of a model take turns, so that all see the same machine, and
every engine's results are compared with PyTorch's before its times count.
"""
