"""Operators of `ai.onnx.ml` and models of classical machine learning, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.tools.onnx_nodes import check_model, check_node, node_model, reference, run_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import FrontendError  # noqa: E402

RNG = np.random.default_rng(3)
ML, FLOAT, INT64 = "ai.onnx.ml", TensorProto.FLOAT, TensorProto.INT64


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def numbers(*shape):
    return normal(int(np.prod(shape))).tolist()


def rows(count=37, columns=5):
    """Values that often equal a threshold, some of them NaN or infinite."""
    values = np.round(normal(count, columns) * 2) / 2
    values[RNG.random(values.shape) < 0.1] = np.nan
    values[0, 0], values[1, 1] = np.inf, -np.inf
    return values


def forest(kind, trees, depth, modes, targets, together, missing=True, columns=5):
    """Attributes of random trees; `together` says whether each leaf names all targets."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    nodes = {name: [] for name in (*names, "missing_value_tracks_true")}
    leaves = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree, depth, count):
        number, place = count[0], len(nodes["treeids"])
        count[0] += 1
        is_leaf = depth == 0 or RNG.random() < 0.15
        mode = "LEAF" if is_leaf else f"BRANCH_{RNG.choice(modes)}"
        limit = 0.0 if is_leaf else float(RNG.choice([-0.5, 0, 0.5, 1]))
        row = (tree, number, int(RNG.integers(columns)), limit, mode, 0, 0, int(missing and RNG.integers(2)))
        for values, value in zip(nodes.values(), row, strict=True):
            values.append(value)
        if is_leaf:
            for target in range(targets) if together else [tree % targets]:
                row = (tree, number, target, float(RNG.standard_normal()))
                for values, value in zip(leaves.values(), row, strict=True):
                    values.append(value)
        else:
            nodes["truenodeids"][place] = grow(tree, depth - 1, count)
            nodes["falsenodeids"][place] = grow(tree, depth - 1, count)
        return number

    for tree in range(trees):
        grow(tree, depth, [0])
    return {f"nodes_{name}": values for name, values in nodes.items()} | {
        f"{kind}_{name}": values for name, values in leaves.items()
    }


ALL_MODES = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"]


@pytest.mark.parametrize(
    "modes, targets, together, aggregate, post, base, missing",
    [
        (["LEQ"], 1, False, "SUM", "NONE", [0.5], False),
        (["LEQ", "LT"], 3, False, "SUM", "SOFTMAX", None, True),
        (["GT", "GTE"], 3, True, "AVERAGE", "NONE", [0.1, 0.2, 0.3], True),
        (ALL_MODES, 2, True, "MIN", "NONE", None, True),
        (ALL_MODES, 2, False, "MAX", "LOGISTIC", [1.0, 2.0], False),
        (["LEQ"], 3, True, "SUM", "SOFTMAX_ZERO", None, False),
    ],
)
def test_regressor(modes, targets, together, aggregate, post, base, missing):
    options = forest("target", 9, 5, modes, targets, together, missing)
    if base:
        options["base_values"] = base
    options |= {"n_targets": targets, "aggregate_function": aggregate, "post_transform": post}
    check_node("TreeEnsembleRegressor", {"x": rows()}, {"y": FLOAT}, ML, version=3, dynamic=["x"], **options)


def test_trees_of_doubles():
    options = forest("target", 9, 5, ["LEQ", "EQ"], 2, True)
    check_node("TreeEnsembleRegressor", {"x": rows().astype(np.float64)}, {"y": FLOAT}, ML, n_targets=2, **options)


def test_columns_that_rows_do_not_have_are_not_read():
    """How many columns there are is open, so reads are clamped: as if the last column were there again."""
    options = forest("target", 9, 5, ["LEQ"], 1, True)
    model, _ = node_model("TreeEnsembleRegressor", {"x": rows()}, {"y": FLOAT}, ML, version=3, n_targets=1, **options)
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.Clear()
    module, x = eyas.compile(model), rows()
    wide = np.concatenate([x[:, :3], x[:, 2:3], x[:, 2:3]], axis=1)
    np.testing.assert_array_equal(np.asarray(module(np.ascontiguousarray(x[:, :3]))), np.asarray(module(wide)))


def test_columns_that_no_table_has_are_refused():
    options = forest("target", 2, 3, ["LEQ"], 1, True)
    options["nodes_featureids"] = [-1] * len(options["nodes_featureids"])
    with pytest.raises(FrontendError, match="column -1"):
        eyas.compile(
            node_model("TreeEnsembleRegressor", {"x": rows()}, {"y": FLOAT}, ML, version=3, n_targets=1, **options)[0]
        )


def test_trees_of_many_columns():
    """Numbers of columns that do not fit the short form of a node."""
    options = forest("target", 5, 4, ["LEQ"], 1, True, columns=40000)
    check_node("TreeEnsembleRegressor", {"x": rows(2, 40000)}, {"y": FLOAT}, ML, n_targets=1, **options)


@pytest.mark.parametrize("together", [False, True])
def test_classifier_of_several_classes(together):
    options = forest("class", 12, 4, ["LEQ"], 3, together) | {"classlabels_int64s": [5, 8, 11]}
    options |= {"post_transform": "SOFTMAX"} if together else {"base_values": [0.1, 0.2, 0.3]}
    check_node("TreeEnsembleClassifier", {"x": rows()}, {"label": INT64, "scores": FLOAT}, ML, **options)


@pytest.mark.parametrize("sign, post", [(1, "NONE"), (-1, "NONE"), (1, "LOGISTIC"), (-1, "SOFTMAX")])
def test_classifier_with_one_score_for_two_classes(sign, post):
    options = forest("class", 3, 3, ["LEQ"], 1, True)
    options["class_weights"] = (sign * np.abs(options["class_weights"])).tolist()
    options |= {"classlabels_int64s": [5, 8], "post_transform": post}
    check_node("TreeEnsembleClassifier", {"x": rows()}, {"label": INT64, "scores": FLOAT}, ML, **options)


def test_labels_of_text_are_places_in_their_list():
    options = forest("class", 6, 3, ["LEQ"], 3, True)
    options |= {"classlabels_strings": list("abc")}
    nodes = [
        helper.make_node("TreeEnsembleClassifier", ["x"], ["l", "s"], domain=ML, **options),
        helper.make_node("ZipMap", ["s"], ["maps"], domain=ML, classlabels_strings=list("abc")),
    ]
    label = helper.make_tensor_value_info("l", TensorProto.STRING, [None])
    maps = helper.make_value_info("maps", helper.make_sequence_type_proto(helper.make_map_type_proto(8, _scalar())))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", FLOAT, [None, 5])], [label, maps])
    opsets = [helper.make_opsetid("", 15), helper.make_opsetid(ML, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    given = {"x": rows()}
    places, scores = run_model(model, given)
    labels, dictionaries = reference(model, given)
    assert [list("abc")[place] for place in places] == list(labels)
    np.testing.assert_allclose(scores, [[d[c] for c in "abc"] for d in dictionaries], rtol=1e-5, atol=1e-6)


def _scalar():
    return helper.make_tensor_type_proto(FLOAT, None)


@pytest.mark.parametrize("count, post", [(1, "LOGISTIC"), (3, "SOFTMAX")])
def test_linear(count, post):
    options = {"coefficients": numbers(count, 5), "intercepts": numbers(count), "post_transform": post}
    check_node("LinearRegressor", {"x": normal(4, 5)}, {"y": FLOAT}, ML, targets=count, **options)
    options["classlabels_ints"] = [3, 9, 11][-max(count, 2) :]
    check_node("LinearClassifier", {"x": normal(4, 5)}, {"label": INT64, "scores": FLOAT}, ML, **options)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kernel):
    options = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 3.0]}
    supports = {"support_vectors": numbers(9, 4), "coefficients": numbers(9), "rho": [0.2], "n_supports": 9}
    check_node("SVMRegressor", {"x": normal(6, 4)}, {"y": FLOAT}, ML, **options, **supports)
    classes = {"vectors_per_class": [3, 2, 4], "classlabels_ints": [2, 3, 5], "rho": numbers(3)}
    supports = {"support_vectors": numbers(9, 4), "coefficients": numbers(2, 9)}
    check_node("SVMClassifier", {"x": normal(6, 4)}, {"l": INT64, "s": FLOAT}, ML, **options, **classes, **supports)


def test_probabilities_of_support_vectors():
    options = {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 0.0], "vectors_per_class": [3, 2, 4]}
    options |= {"classlabels_ints": [2, 3, 5], "rho": numbers(3), "prob_a": [-1.0, -0.5, -2.0], "prob_b": numbers(3)}
    supports = {"support_vectors": numbers(9, 4), "coefficients": numbers(2, 9)}
    check_node("SVMClassifier", {"x": normal(6, 4)}, {"l": INT64, "s": FLOAT}, ML, **options, **supports)


def test_what_stands_around_models():
    """A pipeline of all of them in one graph."""
    make, whole = helper.make_node, [1, 3, 0]
    nodes = [
        make("Imputer", ["x"], ["full"], domain=ML, imputed_value_floats=numbers(5), replaced_value_float=float("nan")),
        make("Scaler", ["full"], ["scaled"], domain=ML, offset=numbers(5), scale=numbers(5)),
        make("Normalizer", ["scaled"], ["l2"], domain=ML, norm="L2"),
        make("Normalizer", ["scaled"], ["l1"], domain=ML, norm="L1"),
        make("Binarizer", ["scaled"], ["bits"], domain=ML, threshold=0.2),
        make("ArrayFeatureExtractor", ["l2", "chosen"], ["two"], domain=ML),
        make("OneHotEncoder", ["k"], ["hot"], domain=ML, cats_int64s=whole, zeros=1),
        make("LabelEncoder", ["k"], ["code"], domain=ML, keys_int64s=whole, values_floats=[1.5, 2.5, 3.5]),
        make("FeatureVectorizer", ["two", "l1", "bits"], ["all"], domain=ML, inputdimensions=[2, 5, 5]),
    ]
    inputs = [helper.make_tensor_value_info("x", FLOAT, [None, 5]), helper.make_tensor_value_info("k", INT64, [4])]
    outputs = [helper.make_tensor_value_info(name, FLOAT, None) for name in ("all", "hot", "code")]
    chosen = [onnx.numpy_helper.from_array(np.int64([[3, 1]]), "chosen")]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 2)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, chosen), opset_imports=opsets, ir_version=9
    )
    x = rows(6)
    x[:2] = 1
    check_model(model, {"x": x, "k": np.int64([1, 2, 0, 3])})


def labels_behind_a_regression(**codes):
    """A label encoder behind an operator of which onnx does not infer what it gives."""
    nodes = [
        helper.make_node("LinearRegressor", ["x"], ["r"], domain=ML, coefficients=[1.0, 0.0], intercepts=[0.0]),
        helper.make_node("LabelEncoder", ["r"], ["y"], domain=ML, keys_floats=[0.0, 1.0, 2.0], **codes),
    ]
    kind = INT64 if "values_int64s" in codes else TensorProto.STRING
    value, result = (helper.make_tensor_value_info(*of) for of in (("x", FLOAT, [None, 2]), ("y", kind, [None, 1])))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 2)]
    return helper.make_model(helper.make_graph(nodes, "g", [value], [result]), opset_imports=opsets, ir_version=9)


def test_labels_of_what_has_no_type_at_first():
    model = labels_behind_a_regression(values_int64s=[5, 7, 9], default_int64=-1)
    check_model(model, {"x": np.float32([[0, 1], [1, 1], [2, 1], [3, 1]])})


def test_text_of_what_has_no_type_at_first_is_its_place():
    module = eyas.compile(labels_behind_a_regression(values_strings=["a", "b", "c"]))
    np.testing.assert_array_equal(module(np.float32([[2, 1], [0, 1], [1, 1]])), [[2], [0], [1]])


def test_a_sequence_as_a_result_of_a_classical_model_is_refused_as_one():
    nodes = [
        helper.make_node("Scaler", ["x"], ["s"], domain=ML, offset=[0.0, 0.0], scale=[1.0, 2.0]),
        helper.make_node("SequenceConstruct", ["s", "x"], ["both"]),
    ]
    value = helper.make_tensor_value_info("x", FLOAT, [None, 2])
    graph = helper.make_graph(nodes, "g", [value], [helper.make_tensor_sequence_value_info("both", FLOAT, None)])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 2)]
    with pytest.raises(FrontendError, match="'both' is a sequence"):
        eyas.compile(helper.make_model(graph, opset_imports=opsets, ir_version=9))


def test_text_is_refused_with_a_reason():
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain=ML, keys_strings=["a"], values_int64s=[1])
    value = helper.make_tensor_value_info("x", TensorProto.STRING, [3])
    graph = helper.make_graph([node], "g", [value], [helper.make_tensor_value_info("y", INT64, [3])])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 2)]
    with pytest.raises(FrontendError, match="takes text"):
        eyas.compile(helper.make_model(graph, opset_imports=opsets))


def test_trained_gradient_boosting():
    lightgbm = pytest.importorskip("lightgbm", reason="needs the extra 'classical'")
    convert = pytest.importorskip("onnxmltools.convert").convert_lightgbm
    types = pytest.importorskip("onnxmltools.convert.common.data_types")
    x = normal(400, 6)
    x[RNG.random(x.shape) < 0.05] = np.nan
    y = np.digitize(np.nan_to_num(x[:, 0] * x[:, 1] + x[:, 2]), [-0.5, 0.5])
    for labels in (y, (y > 0).astype(np.int64)):
        trained = lightgbm.LGBMClassifier(n_estimators=20, num_leaves=15, verbose=-1).fit(x, labels)
        model = convert(trained, initial_types=[("x", types.FloatTensorType([None, 6]))], zipmap=False, target_opset=15)
        check_model(model, {"x": x[:50]})


def test_trained_scikit_learn():
    ensemble = pytest.importorskip("sklearn.ensemble", reason="needs the extra 'classical'")
    linear = pytest.importorskip("sklearn.linear_model")
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    x = normal(300, 6)
    y = np.digitize(x[:, 0] * x[:, 1] + x[:, 2], [-0.5, 0.5])
    forest_ = ensemble.RandomForestClassifier(10, max_depth=6).fit(x, y)
    check_model(to_onnx(forest_, x[:1], options={"zipmap": False}), {"X": x[:50]})
    boosted = ensemble.GradientBoostingRegressor(n_estimators=20).fit(x, x[:, 0] * x[:, 1])
    check_model(to_onnx(boosted, x[:1]), {"X": x[:50]})
    plain = linear.LogisticRegression().fit(x, (y > 0).astype(np.int64))
    check_model(to_onnx(plain, x[:1], options={"zipmap": False}), {"X": x[:50]})
