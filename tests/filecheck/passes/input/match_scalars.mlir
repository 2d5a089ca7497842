// RUN: eyas opt %s --passes match-scalars | filecheck %s

// CHECK-LABEL: func.func @fractions_and_a_whole_number
func.func @fractions_and_a_whole_number(%arg0: !torch.vtensor<[3],f16>) -> !torch.vtensor<[3],i1> {
  // CHECK: %[[C:.+]] = torch.constant.float -2.000000e+00
  // CHECK: torch.aten.lt.Scalar %arg0, %[[C]] : !torch.vtensor<[3],f16>, !torch.float
  %int-2 = torch.constant.int -2
  %0 = torch.aten.lt.Scalar %arg0, %int-2 : !torch.vtensor<[3],f16>, !torch.int -> !torch.vtensor<[3],i1>
  return %0 : !torch.vtensor<[3],i1>
}

// CHECK-LABEL: func.func @whole_numbers_and_a_fraction
func.func @whole_numbers_and_a_fraction(%arg0: !torch.vtensor<[?],ui8>) -> !torch.vtensor<[?],i1> {
  // CHECK: %[[X:.+]] = torch.prims.convert_element_type %arg0, %int6 : !torch.vtensor<[?],ui8>, !torch.int -> !torch.vtensor<[?],f32>
  // CHECK: torch.aten.ge.Scalar %[[X]], %{{.+}} : !torch.vtensor<[?],f32>, !torch.float
  %float = torch.constant.float 5.000000e-01
  %0 = torch.aten.ge.Scalar %arg0, %float : !torch.vtensor<[?],ui8>, !torch.float -> !torch.vtensor<[?],i1>
  return %0 : !torch.vtensor<[?],i1>
}

// CHECK-LABEL: func.func @truths
func.func @truths(%arg0: !torch.vtensor<[3],i1>) -> (!torch.vtensor<[3],i1>, !torch.vtensor<[3],i1>) {
  // CHECK: torch.aten.ne.Scalar %arg0, %int0
  // CHECK: %[[X:.+]] = torch.prims.convert_element_type %arg0, %int4
  // CHECK: torch.aten.gt.Scalar %[[X]], %int0
  %int0 = torch.constant.int 0
  %0 = torch.aten.ne.Scalar %arg0, %int0 : !torch.vtensor<[3],i1>, !torch.int -> !torch.vtensor<[3],i1>
  %1 = torch.aten.gt.Scalar %arg0, %int0 : !torch.vtensor<[3],i1>, !torch.int -> !torch.vtensor<[3],i1>
  return %0, %1 : !torch.vtensor<[3],i1>, !torch.vtensor<[3],i1>
}

// CHECK-LABEL: func.func @number_of_another_kind
func.func @number_of_another_kind(%arg0: !torch.vtensor<[3],f32>, %arg1: !torch.int) -> !torch.vtensor<[3],i1> {
  // CHECK: %[[N:.+]] = torch.aten.Float.Scalar %arg1 : !torch.int -> !torch.float
  // CHECK: torch.aten.eq.Scalar %arg0, %[[N]]
  %0 = torch.aten.eq.Scalar %arg0, %arg1 : !torch.vtensor<[3],f32>, !torch.int -> !torch.vtensor<[3],i1>
  return %0 : !torch.vtensor<[3],i1>
}

// CHECK-LABEL: func.func @whole_part
func.func @whole_part(%arg0: !torch.vtensor<[3],bf16>) -> !torch.vtensor<[3],bf16> {
  // CHECK-DAG: %[[DOWN:.+]] = torch.aten.floor %arg0
  // CHECK-DAG: %[[UP:.+]] = torch.aten.ceil %arg0
  // CHECK: %[[NEGATIVE:.+]] = torch.aten.lt.Scalar %arg0, %float0.000000e00
  // CHECK: torch.aten.where.self %[[NEGATIVE]], %[[UP]], %[[DOWN]]
  // CHECK-NOT: torch.aten.trunc
  %0 = torch.aten.trunc %arg0 : !torch.vtensor<[3],bf16> -> !torch.vtensor<[3],bf16>
  return %0 : !torch.vtensor<[3],bf16>
}

// CHECK-LABEL: func.func @negative_summand
func.func @negative_summand(%arg0: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  // CHECK: torch.aten.add.Scalar %arg0, %float-1.000000e00, %int1 : !torch.vtensor<[3],f32>, !torch.float, !torch.int
  %int1 = torch.constant.int 1
  %int-1 = torch.constant.int -1
  %0 = torch.aten.add.Scalar %arg0, %int-1, %int1 : !torch.vtensor<[3],f32>, !torch.int, !torch.int -> !torch.vtensor<[3],f32>
  return %0 : !torch.vtensor<[3],f32>
}
