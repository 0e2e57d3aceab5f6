"""One random network held against plain hooks: captures, caches, lenses, digest, and its state."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

import hookviz
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.capturing.layers import leaf_names
from hookviz.drawing.panels import TextPanel
from hookviz.hooking import replicas
from hookviz.types import Capture, Model, Preprocess
from tests.networks import hook_count, random_input
from tests.random_networks import SIDE, Description, build, nearby

_LENSES = ("health", "summary", "inputs", "trace", "kernels")


@dataclass(frozen=True)
class Truth:
    """What plain hooks saw: every layer's outputs by address, in order of return, and the scores.

    The values are those at the moment of the return, in the layer's own precision.
    """

    activations: dict[str, Tensor]
    convs: tuple[str, ...]
    output: Tensor


@dataclass(frozen=True)
class Outcome:
    """What was wrong, in words, and what was refused; both empty where all is well."""

    wrong: tuple[str, ...]
    refused: tuple[str, ...]
    runs: bool = True


def plain_hooks(network: nn.Module, image: Tensor) -> Truth:
    """The truth about one pass, by hooks that copy at once on the network itself."""
    activations: dict[str, Tensor] = {}
    convs: list[str] = []
    counts: dict[str, int] = {}
    dtype = next(network.parameters()).dtype

    def keep(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, _inputs: Any, output: Any) -> None:
            call = counts[name] = counts.get(name, -1) + 1
            for path, tensor in _tensors(output):
                address = f"{name}#{call}{path}" if call else f"{name}{path}"
                activations[address] = tensor.detach().clone()
                if isinstance(module, _ConvNd):
                    convs.append(address)

        return hook

    leaves = leaf_names(network)
    handles = [
        module.register_forward_hook(keep(name))
        for name, module in network.named_modules()
        if name in leaves
    ]
    with torch.no_grad():
        output = network(image.to(dtype, copy=True))
    for handle in handles:
        handle.remove()
    return Truth(activations, tuple(convs), output.clone())


def _tensors(output: Any) -> Iterator[tuple[str, Tensor]]:
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
        parts = [(field.name, getattr(output, field.name)) for field in fields(output)]
    for key, part in parts:
        yield from ((f"[{key}]{path}", tensor) for path, tensor in _tensors(part))


def trial(description: Description) -> Outcome:
    """Everything that HookViz does with one network, held against plain hooks on another build."""
    return _Trial(description).outcome()


class _Trial:
    def __init__(self, description: Description) -> None:
        self._description = description
        self._wrong: list[str] = []
        self._refused: list[str] = []
        self._images = [random_input(1, SIDE) - 1, random_input(2, SIDE) + 1, random_input(3, SIDE)]

    def outcome(self) -> Outcome:
        """Run all of it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                truths = [plain_hooks(build(self._description), image) for image in self._images]
            except Exception as error:  # noqa: BLE001 - whatever it is, this network is none
                return Outcome((), (f"does not run: {error}",), runs=False)
            module = build(self._description)
            given = snapshot(module)
            model = self._wrapped(module)
            if model is not None:
                self._look(model, truths)
            if snapshot(module) != given:
                self._wrong.append("the module that was wrapped has changed")
        return Outcome(tuple(self._wrong), tuple(self._refused))

    def _look(self, model: Model, truths: list[Truth]) -> None:
        before = snapshot(model.network)
        cache = Budget(1 << 24).cache(1 << 24)
        if self._description.is_random:
            with self._only_errors_of_ours("random"):
                hookviz.capture(model, self._images[0], cache=cache)
        else:
            self._captures(model, truths, cache)
            self._neighbours(model, truths[1], cache)
        self._lenses(model, cache)
        own = hook_count(model.network)  # an old weight norm is one
        if any(hook_count(idle.network) != own for idle in replicas._idle.get(model.network, [])):
            self._wrong.append("hooks were left")
        if snapshot(model.network) != before:
            self._wrong.append("the shared network has changed")

    def _wrapped(self, module: nn.Module) -> Model | None:
        model: Model | None = None
        with self._only_errors_of_ours("wrap"):
            model = hookviz.wrap(module, Preprocess(resize=SIDE, crop=SIDE))
        return model  # noqa: RET504 - nothing comes back where an error was caught

    def _captures(self, model: Model, truths: list[Truth], cache: ByteCache) -> None:
        """Images in another order than the truths', in several ways, at last from the cache."""
        for turn, index in enumerate((1, 0, 2, 1)):
            truth = truths[index]
            every = tuple(truth.activations)
            names = list(dict.fromkeys(map(_layer, every)))
            alone = names[len(names) // 2]
            ways: list[tuple[str, Any, tuple[str, ...], dict[str, Any]]] = [
                ("kept", None, truth.convs, {"cache": cache}),
                ("every layer", names, every, {"cache": cache, "logits": turn > 0}),
                ("conv layers", None, truth.convs, {}),
                ("without scores", None, truth.convs, {"logits": False}),
                (alone, alone, _of_layer(every, alone), {"logits": False}),
            ]
            for what, layers, addresses, options in ways[: (5, 4, 1, 2)[turn]]:
                when = f"image {index}, {what}"
                with self._only_errors_of_ours(when):
                    cap = hookviz.capture(model, self._images[index], layers, **options)
                    self._compare(when, cap, truth, addresses)
                    if turn == 3 and cap.forward_passes:
                        self._wrong.append(f"{when}: was not in the cache")

    def _neighbours(self, model: Model, truth: Truth, cache: ByteCache) -> None:
        """A network that differs in one thing, with the same cache and name."""
        again = hookviz.wrap(build(self._description), Preprocess(resize=SIDE, crop=SIDE))
        if again.digest != model.digest:
            self._wrong.append("two equal networks have different digests")
        for other in list(nearby(self._description))[self._description.seed :: 5]:
            try:
                theirs = plain_hooks(build(other), self._images[1])
            except Exception:  # noqa: BLE001, S112 - no network
                continue
            beside = self._wrapped(build(other))
            if beside is None:
                continue
            if beside.digest == model.digest and not same_values(truth, theirs):
                self._wrong.append(f"{other} has the same digest")
            with self._only_errors_of_ours("neighbour"):
                cap = hookviz.capture(beside, self._images[1], cache=cache)
                self._compare(f"neighbour {other}", cap, theirs, theirs.convs)

    def _lenses(self, model: Model, cache: ByteCache) -> None:
        with self._only_errors_of_ours("verify"):
            verdict = hookviz.run_lens("verify", model, self._images[1], cache=cache).panels[0]
            assert isinstance(verdict, TextPanel)
            if (verdict.tone == "good") is self._is_random():
                self._wrong.append(f"the seal says: {verdict.text}")
        for slug in _LENSES[self._description.seed :: 4]:
            with self._only_errors_of_ours(slug):
                hookviz.run_lens(slug, model, self._images[1], cache=cache)

    def _is_random(self) -> bool:
        """Whether two passes over the image differ: noise may lie on a way not taken."""
        if not self._description.is_random:
            return False
        passes = [plain_hooks(build(self._description), self._images[1]) for _ in range(2)]
        return not same_values(*passes)

    def _compare(self, when: str, cap: Capture, truth: Truth, expected: tuple[str, ...]) -> None:
        if list(cap) != list(expected):
            self._wrong.append(f"{when}: captured {list(cap)}, not {list(expected)}")
            return
        for address in expected:
            theirs = _without_batch(truth.activations[address])
            if not _equal(cap[address].values, theirs):
                self._wrong.append(f"{when}: {address} differs")
        if cap.logits is not None and not _equal(cap.logits, truth.output.float()[0]):
            self._wrong.append(f"{when}: the scores differ")

    @contextmanager
    def _only_errors_of_ours(self, when: str) -> Iterator[None]:
        try:
            yield
        except hookviz.HookVizError as error:
            self._refused.append(f"{when}: {error}")
        except Exception as error:  # noqa: BLE001 - that there are none is what is tried
            self._wrong.append(f"{when}: {type(error).__name__}: {error}")


def _layer(address: str) -> str:
    return address.partition("[")[0].partition("#")[0]


def _of_layer(addresses: tuple[str, ...], layer: str) -> tuple[str, ...]:
    return tuple(address for address in addresses if _layer(address) == layer)


def _without_batch(tensor: Tensor) -> Tensor:
    values = tensor if tensor.is_complex() else tensor.float()
    return values[0] if values.ndim > 1 and len(values) == 1 else values


def _equal(ours: Tensor, theirs: Tensor) -> bool:
    """To the last bit; NaN is NaN."""
    return ours.shape == theirs.shape and bool(
        ((ours == theirs) | (ours.isnan() & theirs.isnan())).all()
    )


def same_values(one: Truth, other: Truth) -> bool:
    """Whether two networks computed the same."""
    if list(one.activations) != list(other.activations):
        return False
    pairs = zip(one.activations.values(), other.activations.values(), strict=True)
    return all(_equal(ours, theirs) for ours, theirs in pairs)


def snapshot(network: nn.Module) -> list[Any]:
    """Every parameter, buffer and attribute of every module, as values that compare."""
    state: list[Any] = [hook_count(network)]
    for name, module in network.named_modules():
        state.append((name, {key: _frozen(value) for key, value in vars(module).items()}))
    return state


def _frozen(value: Any) -> Any:
    if isinstance(value, Tensor):
        plain = value.detach()
        values = plain.view(torch.int16) if plain.dtype == torch.bfloat16 else plain
        return id(value), str(plain.dtype), np.asarray(values).tobytes()
    if isinstance(value, Mapping):
        return {key: _frozen(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_frozen(part) for part in value]
    return id(value) if isinstance(value, nn.Module) or callable(value) else repr(value)
