"""What the project must show, one file for each bar: `python -m benchmarks [NAME ...]`, or `make bench`.

Each prints machine, target, baseline and ratio; engines that are compared take turns in one process.
"""
