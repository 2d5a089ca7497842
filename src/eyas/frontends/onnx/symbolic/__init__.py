"""An abstract interpreter of ONNX graphs: ranks, sizes and small values as expressions of the inputs' dimensions.

`expressions` are what a size or an element can be, `values` and `sizes` say what operators make of them, `interpret`
walks a graph, and `settle` writes what was found into it: types, constants, and one `EyasSizes` node for what has to be
computed at run time.
"""
