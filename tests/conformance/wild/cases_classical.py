"""Classical models, trained here and exported by the packages that people use for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from tests.conformance.packages import Missing
from tests.conformance.wild.case import Call, Wild

FEATURES = 20


def _data(rows: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Points of which three classes are curved regions."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, FEATURES)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.5 * x[:, 3] ** 2
    return x, y


def _calls(batch: int) -> list[Call]:
    random = np.random.default_rng(1)
    return [{"X": random.normal(size=(rows, FEATURES)).astype(np.float32)} for rows in (batch, 2 * batch + 1)]


def _trained(make: Callable[[], Any], classes: int) -> Any:
    """An ONNX model of an estimator of scikit-learn; probabilities are a tensor, not a list of maps."""
    try:
        from skl2onnx import to_onnx
    except ImportError:
        raise Missing("skl2onnx is not installed: pip install skl2onnx") from None
    x, y = _data()
    target = np.digitize(y, [0.0, 1.0]) if classes else y.astype(np.float32)
    model = make().fit(x, target)
    options = {"zipmap": False} if classes else None
    return to_onnx(model, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})


def _boosted(classes: int) -> Any:
    """500 trees of LightGBM."""
    try:
        import lightgbm
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType
    except ImportError:
        raise Missing("lightgbm and onnxmltools are not installed: pip install lightgbm onnxmltools") from None
    x, y = _data()
    kind = lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor
    target = (y > 0.5).astype(np.int64) if classes else y
    model = kind(n_estimators=500, verbose=-1, num_threads=1, deterministic=True).fit(x, target)
    return convert_lightgbm(
        model, initial_types=[("X", FloatTensorType([None, FEATURES]))], zipmap=False, target_opset=15
    )


def _estimators() -> dict[str, tuple[Callable[[], Any], int]]:
    """By name: how it is made, and how many classes it tells apart (0: a number)."""

    def sklearn(module: str, name: str, **options: Any) -> Callable[[], Any]:
        def make() -> Any:
            import importlib

            return getattr(importlib.import_module(f"sklearn.{module}"), name)(**options)

        return make

    def pipeline() -> Any:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler

        return make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=200))

    return {
        "logistic": (sklearn("linear_model", "LogisticRegression"), 3),
        "ridge": (sklearn("linear_model", "Ridge"), 0),
        "pipeline": (pipeline, 3),
        "svc": (sklearn("svm", "SVC", probability=True, random_state=0), 3),
        "svr": (sklearn("svm", "SVR"), 0),
        "random-forest": (sklearn("ensemble", "RandomForestClassifier", n_estimators=100, random_state=0), 3),
        "gradient-boosting": (sklearn("ensemble", "GradientBoostingRegressor", n_estimators=200, random_state=0), 0),
        "naive-bayes": (sklearn("naive_bayes", "GaussianNB"), 3),
        "neighbours": (sklearn("neighbors", "KNeighborsRegressor"), 0),
        "mlp": (sklearn("neural_network", "MLPClassifier", max_iter=50, random_state=0), 3),
    }


CASES = (
    *(
        Wild(
            f"classical/{name}", (), partial(_calls, 100), build=partial(_trained, make, classes), about="scikit-learn"
        )
        for name, (make, classes) in _estimators().items()
    ),
    *(
        Wild(
            f"classical/lightgbm-{kind}-{batch}",
            (),
            partial(_calls, batch),
            build=partial(_boosted, classes),
            about=f"500 trees, {batch} rows",
        )
        for kind, classes in (("regressor", 0), ("classifier", 2))
        for batch in (1, 1000)
    ),
)
