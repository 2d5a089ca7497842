"""Tensors without dense values are refused with what to do, and training mode is not passed over in silence."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")

import eyas  # noqa: E402
from eyas.errors import FrontendError, TrainingModeWarning  # noqa: E402

nn = torch.nn


def test_inputs_without_values() -> None:
    model = nn.Linear(4, 3).eval()
    with pytest.raises(FrontendError, match=r"example input 0 is on the device 'meta'.*torch\.zeros_like"):
        eyas.compile(model, (torch.empty(2, 4, device="meta"),))
    with pytest.raises(FrontendError, match=r"example input 0 is sparse \(torch\.sparse_coo\).*to_dense"):
        eyas.compile(model, (torch.eye(4).to_sparse(),))
    with pytest.raises(FrontendError, match=r"example input input\['left'\]\[1\] is sparse \(torch.sparse_csr\)"):
        eyas.compile(model, (), kwargs={"input": {"left": [torch.eye(4), torch.eye(4).to_sparse_csr()]}})


def test_weights_without_values() -> None:
    with pytest.raises(FrontendError, match=r"'weight' of Linear is on the device 'meta'.*load_state_dict"):
        eyas.compile(nn.Linear(4, 3, device="meta").eval(), (torch.randn(2, 4),))
    model = nn.Linear(4, 3).eval()
    model.weight = nn.Parameter(model.weight.detach().to_sparse(), requires_grad=False)
    with pytest.raises(FrontendError, match=r"'weight' of Linear is sparse"):
        eyas.compile(model, (torch.randn(2, 4),))


def test_calls_with_tensors_without_values() -> None:
    module = eyas.compile(nn.Linear(4, 3).eval(), (torch.randn(2, 4),))
    for bad in (torch.empty(2, 4, device="meta"), torch.randn(2, 4).to_sparse()):
        with pytest.raises(eyas.EyasError, match="argument 0"):
            module(bad)


def test_training_mode_warns_and_names_the_layer() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    with pytest.warns(
        TrainingModeWarning, match=r"Sequential is in training mode.*BatchNorm2d '1'.*model\.eval\(\)"
    ) as seen:
        eyas.compile(model, (torch.randn(2, 3, 8, 8),))
    assert [one.filename for one in seen if one.category is TrainingModeWarning] == [__file__]


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval(),
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).train(),
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(0.0)).train(),
    ],
    ids=["evaluation", "no such layer", "nothing dropped"],
)
def test_no_warning(model: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingModeWarning)
        eyas.export(model, torch.randn(2, 3, 8, 8))


def test_a_training_step_is_meant_to_train() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingModeWarning)
        eyas.training_step(
            model, nn.MSELoss(), torch.optim.SGD(model.parameters()), (torch.randn(3, 4), torch.randn(3, 4))
        )
