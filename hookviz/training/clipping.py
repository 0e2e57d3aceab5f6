"""Clip gradients while they flow: for a person's own training loop, on their own model."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, SettingError, shorten
from hookviz.hooking import hooks


@contextmanager
def clip_gradients(
    model: nn.Module, value: float | None = None, *, norm: float | None = None
) -> Iterator[None]:
    """Clip the gradient of every parameter as a backward pass computes it, while the block runs.

    Unlike the rest of HookViz this works on the very module that is given. A tensor hook sits on
    each parameter that requires a gradient when the block starts, and is gone afterwards on every
    way out. What is clipped is the gradient of one backward pass, before it is added to
    ``parameter.grad``: two passes that add up can exceed the limit.

    With `value`, each number g becomes min(max(g, −value), value), as
    `torch.nn.utils.clip_grad_value_` does. With `norm`, each parameter's gradient g by itself
    becomes g·min(1, norm / (‖g‖₂ + 10⁻⁶)). That is not the global norm of
    `torch.nn.utils.clip_grad_norm_`, which is known only when the pass is over. The formulas are
    PyTorch's; the idea is from Pascanu et al., "On the difficulty of training recurrent neural
    networks" (2013). NaN stays NaN; infinities become ±value, or NaN where the norm is clipped.

    Args:
        model: a module in training.
        value: the largest absolute value that a gradient may have.
        norm: the largest Euclidean norm that one parameter's gradient may have.

    Raises:
        SettingError: not exactly one limit is given, or it is not a finite number above 0.
        ModelError: no parameter of the model requires a gradient.

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
    limit = _checked("value", value) if norm is None else _checked("norm", norm)
    trained = {
        name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad
    }
    if not trained:
        raise ModelError(
            f"No parameter of this {type(model).__name__} requires a gradient, so there is nothing "
            "to clip. A model in training has some: see requires_grad_."
        )

    def clip(_name: str, gradient: Tensor) -> Tensor:
        if norm is None:
            return gradient.clamp(-limit, limit)
        factor = (limit / (torch.linalg.vector_norm(gradient) + 1e-6)).clamp(max=1)
        clipped: Tensor = gradient * factor
        return clipped

    with hooks.on_gradients(clip) as gradients:
        for name, parameter in trained.items():
            gradients.add(name, parameter)
        yield


def _checked(name: str, limit: object) -> float:
    number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if not (number and math.isfinite(limit) and limit > 0):  # type: ignore[arg-type,operator]
        raise SettingError(f"{name}={shorten(repr(limit))} is not a finite number above 0.")
    return float(limit)  # type: ignore[arg-type]
