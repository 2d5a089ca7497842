"""Matrix factorisations as loops on elements, each written once and used by every frontend.

In: tensors of matrices, [batch, rows, columns]. Out: their factors, as LAPACK packs them. Inner loops run along rows,
which are contiguous, so that LLVM vectorises them; the number of ops does not depend on the size of a matrix.
"""
