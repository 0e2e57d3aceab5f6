"""What a network computes, by plain hooks on the network itself: what HookViz is held against."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing.layers import leaf_names


@dataclass(frozen=True)
class Truth:
    """What plain hooks saw: every layer's outputs by address, in order of return, and the scores.

    The values are those at the moment of the return, in the layer's own precision.
    """

    activations: dict[str, Tensor]
    convs: tuple[str, ...]
    output: Any

    @property
    def scores(self) -> Tensor | None:
        """The output where it is a row of numbers for each image."""
        output = self.output
        return output if isinstance(output, Tensor) and output.ndim == 2 else None


@dataclass
class Pass:
    """What plain hooks saw in one pass; without an output where it ended early."""

    given: Tensor
    names: dict[int, str]
    activations: dict[str, Tensor] = field(default_factory=dict)
    convs: list[str] = field(default_factory=list)
    output: Any = None
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def truth(self) -> Truth:
        """What it computed."""
        return Truth(self.activations, tuple(self.convs), self.output)


@contextmanager
def every_pass(network: nn.Module) -> Iterator[list[Pass]]:
    """Each pass that anybody makes over a network in the block, by hooks that copy at once."""
    passes: list[Pass] = []

    def begin(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
        # Names as they are now: a pass may swap two layers for the next one.
        names = {id(module): name for name, module in network.named_modules()}
        passes.append(Pass(args[0].clone(), names))

    def end(_module: nn.Module, _args: Any, output: Any) -> None:
        passes[-1].output = _copied(output)

    def keep(module: nn.Module, _inputs: Any, output: Any) -> None:
        now = passes[-1]
        name = now.names[id(module)]
        call = f"#{now.calls[name]}" if now.calls[name] else ""
        now.calls[name] += 1
        for path, tensor in tensors_in(output):
            # Of a nested tensor the rows that it has, one behind the other.
            rows = torch.cat(tensor.unbind()) if tensor.is_nested else tensor
            now.activations[f"{name}{call}{path}"] = rows.detach().clone()
            if isinstance(module, _ConvNd):
                now.convs.append(f"{name}{call}{path}")

    leaves = leaf_names(network)
    modules = [module for name, module in network.named_modules() if name in leaves]
    handles = [
        network.register_forward_pre_hook(begin),
        *(module.register_forward_hook(keep) for module in modules),
        network.register_forward_hook(end),
    ]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()


def plain_hooks(network: nn.Module, image: Tensor, dtype: torch.dtype | None = None) -> Truth:
    """The truth about one pass, by hooks that copy at once on the network itself.

    Args:
        network: which is run as it is, in its own mode.
        image: ``(N, C, H, W)``; the network gets a copy.
        dtype: of its input; that of its first parameter by default.
    """
    with every_pass(network) as passes:
        plain_pass(network, image, dtype)
    return passes[-1].truth


def plain_pass(network: nn.Module, image: Tensor, dtype: torch.dtype | None = None) -> Any:
    """What a network puts out for an image, with copies of all tensors in it."""
    dtype = dtype or next((part.dtype for part in network.parameters()), torch.float32)
    with torch.no_grad():
        return _copied(network(image.to(dtype, copy=True)))


def _copied(output: Any) -> Any:
    if isinstance(output, Tensor):
        return output.clone()
    if isinstance(output, dict):
        return {key: _copied(part) for key, part in output.items()}
    return [_copied(part) for part in output] if isinstance(output, tuple | list) else output


def tensors_in(output: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that is put out, with its path as addresses write it."""
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(output, Tensor):
        yield "", output
    elif isinstance(output, dict):
        parts = output.items()
    elif hasattr(output, "_asdict"):
        parts = output._asdict().items()
    elif isinstance(output, tuple | list):
        parts = enumerate(output)
    elif is_dataclass(output):
        parts = [(each.name, getattr(output, each.name)) for each in fields(output)]
    for key, part in parts:
        yield from ((f"[{key}]{path}", tensor) for path, tensor in tensors_in(part))


def equal(ours: Tensor, theirs: Tensor) -> bool:
    """To the last bit; NaN is NaN."""
    return ours.shape == theirs.shape and bool(
        ((ours == theirs) | (ours.isnan() & theirs.isnan())).all()
    )


def close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-4) -> bool:
    """But for rounding, by the largest number among them."""
    if ours.shape != theirs.shape:
        return False
    scale = float(theirs.abs().nan_to_num(0, 0, 0).max()) if theirs.numel() else 0.0
    return torch.allclose(ours, theirs.to(ours.dtype), 0, tolerance * (scale + 1), equal_nan=True)


def equal_outputs(one: Any, other: Any) -> bool:
    """Whether two passes put out the same tensors."""
    mine, yours = list(tensors_in(one)), list(tensors_in(other))
    return [path for path, _ in mine] == [path for path, _ in yours] and all(
        equal(a, b) for (_, a), (_, b) in zip(mine, yours, strict=True)
    )


def seen_pixels(network: nn.Module, image: Tensor, dtype: torch.dtype) -> dict[str, Tensor]:
    """Where a gradient reaches from the middle cell of a conv layer's first call, ``(H, W)``.

    By the layer's name. Nothing of a network that can't be differentiated.
    """
    outputs: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            if output.ndim == 4 and output.requires_grad:
                outputs.setdefault(name, output.clone())

        return hook

    for name, module in network.named_modules():
        if isinstance(module, _ConvNd):
            module.register_forward_hook(keep(name))
    leaf = image.to(dtype, copy=True).requires_grad_()
    seen: dict[str, Tensor] = {}
    try:
        network(leaf * 1)
        for name, output in outputs.items():
            rows, columns = output.shape[2:]
            cell = output[0, :, rows // 2, columns // 2].sum()
            (slope,) = torch.autograd.grad(cell, leaf, retain_graph=True)
            seen[name] = (slope[0] != 0).any(0)
    except Exception:  # noqa: BLE001 - writes in place and past autograd
        return {}
    return seen


def every_output(network: nn.Module, image: Tensor) -> dict[str, list[Any]]:
    """A clone of what every module puts out, as a tutorial would keep it."""
    seen: dict[str, list[Any]] = {}

    def keeper(name: str) -> Callable[..., None]:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            kept = output.clone() if isinstance(output, Tensor) else output
            seen.setdefault(name, []).append(kept)

        return keep

    handles = [
        module.register_forward_hook(keeper(name))
        for name, module in network.named_modules()
        if name
    ]
    with torch.no_grad():
        network(image.clone())
    for handle in handles:
        handle.remove()
    return seen
