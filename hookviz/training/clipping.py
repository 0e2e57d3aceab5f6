"""Clip gradients while a backward pass computes them, on the caller's own model."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, SettingError, one_of, shorten
from hookviz.hooking import hooks
from hookviz.hooking.gradients import Gradient, on_gradients
from hookviz.hooking.modules import module_named, network_of
from hookviz.hooking.selection import Layers, select
from hookviz.types import Model


@contextmanager
def clip_gradients(
    model: nn.Module | Model,
    value: float | None = None,
    *,
    norm: float | None = None,
    at: str = "parameters",
    layers: Layers = None,
    exclude: Layers = (),
) -> Iterator[None]:
    """Clip gradients as a backward pass computes them, of parameters or on their way, in the block.

    A tensor hook sits on each parameter that requires a gradient when the block starts, and is gone
    afterwards on every way out. What is clipped is the gradient of one backward pass, before it is
    added to ``parameter.grad``: two passes that add up can exceed the limit. With `at` the
    gradients that reach the layers' outputs or inputs are clipped instead (see `on_gradients`), and
    all layers before them get gradients computed from the clipped ones.

    With `value`, each number g becomes min(max(g, −value), value), as
    `torch.nn.utils.clip_grad_value_` does. With `norm`, each parameter's gradient g by itself
    becomes g·min(1, norm / (‖g‖₂ + 10⁻⁶)). That is not the global norm of
    `torch.nn.utils.clip_grad_norm_`, which is known only when the pass is over. The formulas are
    PyTorch's; the idea is from Pascanu et al., "On the difficulty of training recurrent neural
    networks" (2013). NaN stays NaN; infinities become ±value, or NaN where the norm is clipped.

    Args:
        model: in training; as of `observe`.
        value: the largest absolute value that a gradient may have.
        norm: the largest Euclidean norm that one parameter's gradient may have, or that of one
            tensor, of the whole batch.
        at: ``"parameters"``, ``"outputs"`` or ``"inputs"``.
        layers: whose outputs or inputs, or whose parameters and those of their parts; as of
            `observe`, None for every one.
        exclude: not those of these; chosen in the same ways.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: not exactly one limit is given, or it is not a finite number above 0; `at` is
            none of the three; no layer is left.
        ModelError: no parameter of the model requires a gradient, or it is no module.

    >>> network = torch.nn.Conv2d(3, 4, 3)
    >>> with hookviz.clip_gradients(network, 0.5):
    ...     network(torch.ones(1, 3, 8, 8)).sum().backward()  # (N, C, H, W)
    >>> float(network.weight.grad.max())  # each would be 36.0
    0.5
    """
    if (value is None) == (norm is None):
        raise SettingError(
            f"clip_gradients takes one limit, value= or norm=; given were value={value!r} and "
            f"norm={norm!r}. For example clip_gradients(model, 0.5)."
        )
    limit = _check_limit("value", value) if norm is None else _check_limit("norm", norm)
    one_of("place for clip_gradients", at, ("parameters", "outputs", "inputs"))

    def clip(gradient: Tensor) -> Tensor:
        if norm is None:
            return gradient.clamp(-limit, limit)
        factor = (limit / (torch.linalg.vector_norm(gradient) + 1e-6)).clamp(max=1)
        clipped: Tensor = gradient * factor
        return clipped

    def clip_side(gradient: Gradient) -> Tensor | None:
        return clip(gradient.value) if at == f"{gradient.side}s" else None

    if at != "parameters":
        with on_gradients(model, layers, clip_side, exclude=exclude):
            yield
        return
    with hooks.on_gradients(lambda _name, gradient: clip(gradient)) as gradients:
        for name, parameter in _trainable(model, layers, exclude):
            gradients.add(name, parameter)
        yield


def _trainable(
    model: nn.Module | Model, layers: Layers, exclude: Layers
) -> Iterable[tuple[str, nn.Parameter]]:
    network = network_of(model)
    trained = {
        name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad
    }
    if not trained:
        raise ModelError(
            f"No parameter of this {type(network).__name__} requires a gradient, so there is "
            "nothing to clip. A model in training has some: see requires_grad_."
        )
    chosen = _parameter_ids(model, "" if layers is None else layers)
    chosen -= _parameter_ids(model, exclude)
    selected = [(name, weight) for name, weight in trained.items() if id(weight) in chosen]
    if not selected:
        raise SettingError("The chosen layers have no parameter that requires a gradient.")
    return selected


def _parameter_ids(model: nn.Module | Model, layers: Layers) -> set[int]:
    """Return the ids of all parameters of these layers and of their parts."""
    modules = (module_named(network_of(model), name) for name in select(model, layers))
    return {id(weight) for module in modules for weight in module.parameters()}


def _check_limit(name: str, limit: object) -> float:
    number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if not (number and math.isfinite(limit) and limit > 0):  # type: ignore[arg-type,operator]
        raise SettingError(f"{name}={shorten(repr(limit))} is not a finite number above 0.")
    return float(limit)  # type: ignore[arg-type]
