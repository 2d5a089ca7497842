"""What every target's code generation shares: symbolic sizes, tensor views, kernels as loop nests."""
