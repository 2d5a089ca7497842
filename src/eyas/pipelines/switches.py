"""What can be switched off with `disable`, and what a program is like without it: for people, and for the docs."""

from __future__ import annotations

from eyas.codegen.backends import all_switches
from eyas.pipelines.phases import OPTIONAL_PASSES

WITHOUT = {
    "speculate-branches": "a branch on data is one dispatch of scalar code",
    "count-loops": "loops count in the way that their framework does, and are one dispatch of scalar code each",
    "batch-loops": "loops whose steps are independent of each other take them one by one",
    "outline-control-flow": "each loop and each branch on data is one dispatch, on one core",
    "convert-sorts": "sorts compare neighbours, in a time that grows with the square of the length",
    "widen-accumulators": "sums of f16 and bf16 accumulate in their own type",
    "quantize-contractions": "products of dequantised torch tensors are of floats",
    "narrow-contractions": "integer products read numbers that were extended to 32 bits before",
    "skip-inserted-zeros": "transposed convolutions multiply the zeros between pixels",
    "convert-conv-layout": "convolutions stay as the framework has them",
    "propagate-transposes": "transposes stay where they are",
    "split-reductions": "long sums for few results keep a part of a GPU busy",
    "propagate-reshapes": "bias and activation of a product that is reshaped in between run by themselves",
    "trim-windows": "convolutions multiply taps that see only padding",
    "fuse-gathers": "products of chosen matrices read copies of them",
    "fold-scales": "batch normalisations multiply and add after convolutions instead of being part of their weights",
    "winograd": "3x3 convolutions multiply each tap",
    "evaluate-constants": "what depends on weights alone is computed in each call, and `winograd` is left out",
    "compose-copies": "filters of a training step are transposed, flipped and cut one after the other",
    "fuse-attention": "the scores of attention are written to memory and read again, by a dispatch for each product and"
    " softmax",
    "lower-precision": "with `precision=` everything is computed in f32 all the same",
    "unify-dimensions": "dynamic dimensions that are equal are not seen to be",
    "fold-index-ranges": "comparisons of indices with bounds that always hold are computed",
    "form-dispatches": "each op is a dispatch of its own",
    "deduplicate-executables": "each dispatch has an executable of its own",
    "apply-tuning-spec": "tuning specs, given or shipped, decide nothing",
    "write-state-in-place": "new values of state are copied into it at the end of each call",
    "reuse-in-place": "a dispatch never writes over an operand",
    "plan-memory": "each intermediate has its own buffer",
    "insert-barriers": "each dispatch waits for the one before it",
    "pack-weights": "weights are stored as the framework has them, not in the panels that products read",
    "contraction": "the `rows` strategy serves matmuls and convolutions",
    "transforms": "tiles of Winograd convolutions are transformed by plain loops, slowly",
    "windows": "`contraction` serves windows too, testing for the edges of the image in each step",
    "attention": "the `rows` strategy serves fused attention",
    "recurrence": "steps of recurrent layers are plain loops, or run one by one in the host program",
    "rows": "what no other strategy serves is plain loops",
    "expand-math": "math functions are libm's",
    "optimize-llvm": "code is generated as it was lowered",
    "matrices": "for GPUs: products and convolutions of f16, bf16 and bytes are those of `products` and `contraction`",
    "matrix-attention": "for GPUs: attention of f16 and bf16 is that of `attention`",
    "products": "for GPUs: `contraction` serves all products, without shared memory",
    "columns": "for GPUs: sums down columns have a thread for each of them, or read far apart",
    "transposes": "for GPUs: what changes the order of loops reads or writes far apart",
    "scan": "for GPUs: running sums are plain loops of one workgroup",
    "scatter": "for GPUs: scatters are plain loops of one workgroup",
    "sort": "for GPUs: sorts are plain loops of one workgroup",
    "points": "for GPUs: elementwise work and copies are plain loops",
    "microkernels": "for `vmvx`: all dispatches are plain loops of scalar bytecode",
}


def emit_md() -> str:
    """The table of docs/architecture.md, in the order in which a program meets them."""
    names = [*OPTIONAL_PASSES, *all_switches()]
    assert set(names) == set(WITHOUT), f"say what it is like without: {sorted(set(names) ^ set(WITHOUT))}"
    return "\n".join(["| name | without it |", "|---|---|", *(f"| `{name}` | {WITHOUT[name]} |" for name in names)])
