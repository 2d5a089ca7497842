// RUN: eyas opt %s --passes convert-row-updates | filecheck %s

// A list of positions along dimension 1, everything along the others.
// CHECK-LABEL: func.func @rows
func.func @rows(%cache: !torch.vtensor<[4,32,16],f32>, %rows: !torch.vtensor<[4,3,16],f32>, %at: !torch.vtensor<[3],si64>) -> !torch.vtensor<[4,32,16],f32> {
  %int-1 = torch.constant.int -1
  %int0 = torch.constant.int 0
  %int1 = torch.constant.int 1
  %int4 = torch.constant.int 4
  %int16 = torch.constant.int 16
  %none = torch.constant.none
  %false = torch.constant.bool false
  %a = torch.aten.arange.start_step %int0, %int4, %int1, %int4, %none, %none, %none : !torch.int, !torch.int, !torch.int, !torch.int, !torch.none, !torch.none, !torch.none -> !torch.vtensor<[4],si64>
  %a1 = torch.aten.unsqueeze %a, %int-1 : !torch.vtensor<[4],si64>, !torch.int -> !torch.vtensor<[4,1],si64>
  %a2 = torch.aten.unsqueeze %a1, %int-1 : !torch.vtensor<[4,1],si64>, !torch.int -> !torch.vtensor<[4,1,1],si64>
  %b1 = torch.aten.unsqueeze %at, %int-1 : !torch.vtensor<[3],si64>, !torch.int -> !torch.vtensor<[3,1],si64>
  %c = torch.aten.arange.start_step %int0, %int16, %int1, %int4, %none, %none, %none : !torch.int, !torch.int, !torch.int, !torch.int, !torch.none, !torch.none, !torch.none -> !torch.vtensor<[16],si64>
  %list = torch.prim.ListConstruct %a2, %b1, %c : (!torch.vtensor<[4,1,1],si64>, !torch.vtensor<[3,1],si64>, !torch.vtensor<[16],si64>) -> !torch.list<vtensor>
  // CHECK: [[CACHE:%.*]] = torch_c.to_builtin_tensor %arg0
  // CHECK: [[AT:%.*]] = torch_c.to_builtin_tensor %arg2
  // CHECK: [[ROWS:%.*]] = torch_c.to_builtin_tensor %arg1
  // CHECK: scf.for [[I:%.*]] = {{.*}} iter_args([[C:%.*]] = [[CACHE]])
  // CHECK: tensor.extract [[AT]]{{\[}}[[I]]{{\]}}
  // CHECK: [[P:%.*]] = arith.select
  // CHECK: [[OK:%.*]] = arith.cmpi ult, [[P]]
  // CHECK: scf.if [[OK]]
  // CHECK: [[ROW:%.*]] = tensor.extract_slice [[ROWS]][0, [[I]], 0] [4, 1, 16] [1, 1, 1]
  // CHECK: tensor.insert_slice [[ROW]] into [[C]][0, [[P]], 0] [4, 1, 16] [1, 1, 1]
  // CHECK: cf.assert {{.*}} {flow.keep}
  %0 = torch.aten.index_put.hacked_twin %cache, %list, %rows, %false : !torch.vtensor<[4,32,16],f32>, !torch.list<vtensor>, !torch.vtensor<[4,3,16],f32>, !torch.bool -> !torch.vtensor<[4,32,16],f32>
  return %0 : !torch.vtensor<[4,32,16],f32>
}

// Sums are for the importer's scatter.
// CHECK-LABEL: func.func @accumulate
// CHECK: torch.aten.index_put.hacked_twin
func.func @accumulate(%x: !torch.vtensor<[8],f32>, %v: !torch.vtensor<[2],f32>, %at: !torch.vtensor<[2],si64>) -> !torch.vtensor<[8],f32> {
  %true = torch.constant.bool true
  %list = torch.prim.ListConstruct %at : (!torch.vtensor<[2],si64>) -> !torch.list<vtensor>
  %0 = torch.aten.index_put.hacked_twin %x, %list, %v, %true : !torch.vtensor<[8],f32>, !torch.list<vtensor>, !torch.vtensor<[2],f32>, !torch.bool -> !torch.vtensor<[8],f32>
  return %0 : !torch.vtensor<[8],f32>
}
