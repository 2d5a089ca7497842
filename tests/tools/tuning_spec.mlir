// What tests/filecheck/passes/schedule/apply_tuning_spec.mlir is run with.
module attributes {transform.with_named_sequence} {
  transform.named_sequence @wide(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    "tuning.match"(%op) {
      target = "llvm-cpu:x86_64:+avx2,-avx512f",
      kind = "contraction",
      sizes = [64, "multiple of 32", "any"],
      types = [f32, f32, f32],
      maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    } : (!transform.any_op) -> ()
    %schedule = transform.param.constant #codegen.strategy<"contraction", {
      tiles = [{loop = 1, width = 8, vectors = 2, unroll_loop = 0, unroll = 4}], grid = [{loop = 0, tile = 16}]}>
      -> !transform.any_param
    transform.yield %op, %schedule : !transform.any_op, !transform.any_param
  }

  // Upstream's own match ops: bits of an element, but not its type; ranks and sizes, but no maps.
  transform.named_sequence @upstream(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    transform.match.operation_name %op ["linalg.exp"] : !transform.any_op
    transform.match.structured failures(propagate) %op : !transform.any_op {
    ^bb0(%inner: !transform.any_op):
      %rank = transform.match.structured.rank %inner : (!transform.any_op) -> !transform.param<i64>
      %one = transform.param.constant 1 : i64 -> !transform.param<i64>
      transform.match.param.cmpi eq %rank, %one : !transform.param<i64>
      transform.match.structured.yield
    }
    %schedule = transform.param.constant #codegen.strategy<"loops", {}> -> !transform.any_param
    transform.yield %op, %schedule : !transform.any_op, !transform.any_param
  }

  // For another kind of machine: left out.
  transform.named_sequence @elsewhere(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    "tuning.match"(%op) {target = "vmvx", kind = "contraction"} : (!transform.any_op) -> ()
    %schedule = transform.param.constant #codegen.strategy<"loops", {}> -> !transform.any_param
    transform.yield %op, %schedule : !transform.any_op, !transform.any_param
  }

  transform.named_sequence @never(%op: !transform.any_op {transform.readonly})
      -> (!transform.any_op, !transform.any_param) {
    "tuning.match"(%op) {kind = "softmax"} : (!transform.any_op) -> ()
    %schedule = transform.param.constant #codegen.strategy<"loops", {}> -> !transform.any_param
    transform.yield %op, %schedule : !transform.any_op, !transform.any_param
  }

  transform.named_sequence @set_schedule(
      %op: !transform.any_op {transform.readonly}, %schedule: !transform.any_param {transform.readonly}) {
    transform.annotate %op "codegen.strategy" = %schedule : !transform.any_op, !transform.any_param
    transform.yield
  }

  transform.named_sequence @__transform_main(%op: !transform.any_op) {
    %done = transform.foreach_match restrict_root in %op
        @elsewhere -> @set_schedule,
        @wide -> @set_schedule,
        @upstream -> @set_schedule,
        @never -> @set_schedule
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
