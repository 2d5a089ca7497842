"""The tuner: which schedule of each dispatch is fastest on a device, found by trying.

A model and a target go in; a tuning spec comes out, transform-dialect text that `eyas compile --tuning-spec` applies.
Strategies say what can be chosen (`codegen/common/space.py`); here points of these spaces are drawn, compiled in child
processes, compared with plain loops, timed beside what is chosen by default, and kept in a database.
"""
