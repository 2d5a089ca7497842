"""A PyTorch training step as one program: forward, backward and the optimiser's update.

torch traces itself: the model is called functionally, gradients come from its own autograd, and the optimiser is the
user's own, run on traced tensors. Parameters, buffers that change and the optimiser's tensors become state.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import inspect
import unittest.mock
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch.func import functional_call, functionalize, grad_and_value
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, sdpa_kernel

from eyas.errors import FrontendError, UnsupportedOpError, UsageError
from eyas.frontends.states import bind_states, initial_values
from eyas.frontends.torch import importer as from_torch
from eyas.frontends.torch.aliases import is_written
from eyas.frontends.torch.tensors import as_numpy
from eyas.module import trees
from eyas.program.program import EntryPoint, ImportedProgram, Signature, Source

# Their tensors start as zeros, which is what makes a state without a first step.
_OPTIMIZERS = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop)
_STEP = "optimizer.step"
_RATE = "optimizer.lr"

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class TrainingStep:
    """What `eyas.compile` takes to train: a call with a batch returns the loss and updates the state.

    `loss` is called with the model's output and the last tensor of the batch; without it the model returns the loss. A
    model in evaluation mode is traced in training mode. The learning rate is the one that the optimiser has now; one
    that is a tensor becomes state, `optimizer.lr`, which a schedule sets between calls.
    """

    model: torch.nn.Module
    loss: Callable[..., torch.Tensor] | None
    optimizer: torch.optim.Optimizer
    eyas_frontend = "training"

    def __post_init__(self) -> None:
        if type(self.optimizer) not in _OPTIMIZERS:
            known = ", ".join(one.__name__ for one in _OPTIMIZERS)
            raise UsageError(f"the optimiser {type(self.optimizer).__name__} is not supported; supported: {known}")
        for group in self.optimizer.param_groups:
            if group.get("momentum") and group.get("dampening"):
                raise UsageError("SGD with dampening treats its first step differently, which is not supported")
            if isinstance(group["lr"], torch.Tensor) and type(self.optimizer) is torch.optim.SGD:
                raise UsageError("SGD with a tensor as its learning rate is not supported; give a number")


def import_model(
    step: TrainingStep,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    states: frozenset[str] = frozenset(),
) -> ImportedProgram:
    """Traces a training step on an example batch and imports it."""
    if kwargs or dynamic_shapes is not None:
        raise UsageError("a training step takes a batch of tensors of fixed shapes: no keywords, no dynamic shapes")
    if not args or not all(isinstance(one, torch.Tensor) for one in args):
        raise UsageError("a training step needs an example batch: a tuple of tensors, the last one is for the loss")
    variables = _Variables(step)
    graph = _trace(step, variables, args)
    changed, settable, constant = _split(graph, variables)
    wrapped = _Graph(graph, {position: variables.values[name] for position, name in constant.items()})
    names = [*changed.values(), *settable.values()]
    inputs = [*(variables.values[name] for name in names), *args]
    description = f"training step of {type(step.model).__name__} with {type(step.optimizer).__name__}"
    try:
        program = from_torch.import_model(wrapped.eval(), inputs, {}, None)
    except UnsupportedOpError as error:
        raise UnsupportedOpError(f"{description}: {error}") from error
    bind_states(program.module, dict(enumerate(names)), dict(enumerate(changed.values(), 1)))
    return _with_batch(program, step, names, variables, description)


def _with_batch(
    program: ImportedProgram, step: TrainingStep, names: list[str], variables: _Variables, description: str
) -> ImportedProgram:
    """The program with a signature of the batch and the loss alone."""
    batch = program.signature.arguments[len(names) :]
    inputs = list(inspect.signature(step.model.forward).parameters)[: len(batch) - (step.loss is not None)]
    labels = [*inputs, *(["target"] if step.loss is not None else [])]
    if len(labels) != len(batch) or len(set(labels)) != len(batch):
        labels = [f"batch_{index}" for index in range(len(batch))]
    arguments = tuple(replace(one, name=name) for one, name in zip(batch, labels, strict=True))
    signature = Signature(arguments, (replace(program.signature.results[0], name="loss"),), {})
    entry = EntryPoint(signature, trees.CallTree.flat(labels), trees.LEAF)
    values = {name: as_numpy(variables.values[name]).copy() for name in names}
    return ImportedProgram(
        program.module,
        {**program.parameters, **initial_values(values)},
        *(entry.signature, entry.in_tree, entry.out_tree),
        Source("pytorch", description),
        program.early_text,
        entries={"main": entry},
    )


class _Variables:
    """Everything that may change, by name: trained parameters, buffers, and the optimiser's tensors."""

    def __init__(self, step: TrainingStep) -> None:
        model, optimizer = step.model, step.optimizer
        names = {parameter: name for name, parameter in model.named_parameters()}
        trained = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if stranger := next((one for one in trained if one not in names), None):
            raise UsageError(f"the optimiser has a parameter of shape {list(stranger.shape)} that is not the model's")
        self.trained = [names[parameter] for parameter in trained if parameter.requires_grad]
        self.values: Tensors = {name: parameter.detach() for parameter, name in names.items()}
        self.frozen = [name for name in self.values if name not in self.trained]
        self.buffers = [name for name, _ in model.named_buffers()]
        self.values |= {name: buffer.detach() for name, buffer in model.named_buffers()}
        self.slots: dict[tuple[str, str], str] = {}
        """(parameter, key of the optimiser's state) -> name of the variable."""
        self._add_optimizer_state(optimizer, [names[parameter] for parameter in trained])
        self.rates: dict[int, str] = {}
        """Group of parameters -> the variable that is its learning rate, where that is a tensor."""
        for at, group in enumerate(optimizer.param_groups):
            if isinstance(group["lr"], torch.Tensor):
                self.rates[at] = f"{_RATE}.{at}" if at else _RATE
                self.values[self.rates[at]] = group["lr"].detach().clone()

    def _add_optimizer_state(self, optimizer: torch.optim.Optimizer, names: list[str]) -> None:
        before = [optimizer.state.get(p, {}) for group in optimizer.param_groups for p in group["params"]]
        steps: dict[float, str] = {}
        for name, old, made in zip(names, before, _states_after_a_step(optimizer), strict=True):
            for key, value in made.items():
                if not isinstance(value, torch.Tensor):
                    continue
                known = old.get(key)
                start = known.detach().clone() if isinstance(known, torch.Tensor) else torch.zeros_like(value)
                if key == "step":
                    # One count for all parameters that have made as many steps; f64, because 1 - 0.999 ** step loses
                    # half of its digits in f32, which eager torch computes in Python.
                    count = float(start)
                    variable = steps.setdefault(count, _STEP if not steps else f"{_STEP}.{len(steps)}")
                    start = start.to(torch.float64)
                else:
                    variable = f"optimizer.{name}.{key}"
                self.slots[name, key] = variable
                self.values[variable] = start


def _states_after_a_step(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """What a copy of the optimiser has for each parameter once it has made a step, which is when it makes its state."""
    copied = copy.deepcopy(optimizer)
    parameters = [parameter for group in copied.param_groups for parameter in group["params"]]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    copied.step()
    return [dict(copied.state.get(parameter, {})) for parameter in parameters]


def _trace(step: TrainingStep, variables: _Variables, batch: Sequence[torch.Tensor]) -> torch.fx.GraphModule:
    """A graph from (variables, batch) to (loss, new variables), without mutations."""
    names = list(variables.values)
    count = len(batch) - (step.loss is not None)

    def compute_loss(parameters: Tensors, frozen: Tensors, buffers: Tensors, inputs: Sequence[torch.Tensor]) -> Any:
        buffers = {name: value.clone() for name, value in buffers.items()}
        output = functional_call(step.model, {**parameters, **frozen, **buffers}, tuple(inputs[:count]))
        loss = output if step.loss is None else step.loss(output, *inputs[count:])
        return loss, buffers

    def run(values: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        now = dict(zip(names, values, strict=True))
        trained, frozen, buffers = (
            {name: now[name] for name in one} for one in (variables.trained, variables.frozen, variables.buffers)
        )
        gradients, (loss, buffers) = grad_and_value(compute_loss, has_aux=True)(trained, frozen, buffers, inputs)
        updated = _update(step.optimizer, variables, now, gradients)
        return [loss, *({**now, **buffers, **updated}[name] for name in names)]

    with _traceable(step.model):
        try:
            # The op that `batch_norm` runs writes to its statistics without saying so; it is replaced by one that does.
            honest: Any = get_decompositions([torch.ops.aten.native_batch_norm])
            functional = functionalize(run, remove="mutations")
            traced = make_fx(functional, honest, tracing_mode="fake", _allow_non_fake_inputs=True)
            return traced(list(variables.values.values()), list(batch))
        except Exception as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            name = type(step.model).__name__
            raise FrontendError(f"torch could not trace a training step of {name}: {line}") from error


@contextlib.contextmanager
def _traceable(model: torch.nn.Module) -> Iterator[None]:
    """Training mode; attention and recurrence in plain ops instead of kernels whose gradients nobody else has."""
    modes = {module: module.training for module in model.modules()}
    if not model.training:
        model.train()
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            sdpa_kernel(SDPBackend.MATH),
            torch.backends.mkldnn.flags(enabled=False),
        ):
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _update(optimizer: torch.optim.Optimizer, variables: _Variables, now: Tensors, gradients: Tensors) -> Tensors:
    """Runs the optimiser's own step on traced tensors; the new values by name."""
    groups, fresh = [], {}
    state: dict[torch.Tensor, Tensors] = collections.defaultdict(dict)
    names = iter(variables.trained)
    for at, group in enumerate(optimizer.param_groups):
        parameters = []
        for parameter in group["params"]:
            if not parameter.requires_grad:
                continue
            name = next(names)
            value = now[name].clone()
            value.grad = gradients[name]
            slots = {key: variable for (owner, key), variable in variables.slots.items() if owner == name}
            state[value] = {key: now[variable].clone() for key, variable in slots.items()}
            fresh[name] = value
            fresh |= {variable: state[value][key] for key, variable in slots.items()}
            parameters.append(value)
        # The plain implementation; with `capturable` the count of steps stays a tensor.
        options: dict[str, Any] = {"foreach": False, "fused": False, "capturable": True}
        if at in variables.rates:
            options["lr"] = now[variables.rates[at]]
        groups.append({**group, **{key: value for key, value in options.items() if key in group}, "params": parameters})
    copied = copy.copy(optimizer)
    copied.__dict__ = {**optimizer.__dict__, "param_groups": groups, "state": state}
    with torch.no_grad(), unittest.mock.patch.object(torch.compiler, "is_compiling", lambda: True):
        step = inspect.unwrap(type(optimizer).step)
        step(copied)
    return fresh


def _split(graph: torch.fx.GraphModule, variables: _Variables) -> tuple[dict[int, str], ...]:
    """Positions of variables that the step changes, that it only reads but others set, and that become constants."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"][: len(variables.values)]
    (output,) = [node for node in graph.graph.nodes if node.op == "output"]
    results = list(output.args[0])[1:]
    changed: dict[int, str] = {}
    settable: dict[int, str] = {}
    constant: dict[int, str] = {}
    kept = [output.args[0][0]]
    for position, (name, given, made) in enumerate(zip(variables.values, inputs, results, strict=True)):
        if name in variables.rates.values():  # the last ones, so that inputs keep their order
            settable[position] = name
        elif _is_unchanged(made, given):
            constant[position] = name
        else:
            changed[position] = name
            kept.append(made)
    output.args = (kept,)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return changed, settable, constant


def _is_unchanged(made: Any, given: torch.fx.Node) -> bool:
    """Whether a new value is the old one, or a copy of it that no in-place op writes to."""
    while made is not given:
        if not isinstance(made, torch.fx.Node) or made.target is not torch.ops.aten.clone.default or is_written(made):
            return False
        made = made.args[0]
    return True


class _Graph(torch.nn.Module):
    """The traced graph over the variables that are state and the batch; the rest are its own."""

    def __init__(self, graph: torch.fx.GraphModule, constants: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self.graph_module = graph
        self.positions = sorted(constants)
        self.inputs = len([node for node in graph.graph.nodes if node.op == "placeholder"])
        for position, value in constants.items():
            self.register_buffer(f"constant{position}", value)

    def forward(self, *inputs: torch.Tensor) -> Any:
        given = iter(inputs)
        values = [
            getattr(self, f"constant{position}") if position in self.positions else next(given)
            for position in range(self.inputs)
        ]
        return tuple(torch.fx.Interpreter(self.graph_module).run(*values, enable_io_processing=False))
