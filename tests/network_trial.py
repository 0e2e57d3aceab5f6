"""One random network held against plain hooks: captures, caches, lenses, and its state.

A long file: one trial, each of whose methods is one thing that HookViz does with a network.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.drawing.panels import TextPanel
from hookviz.explaining.receptive_field import receptive_fields
from hookviz.types import WINDOWS, Activation, Capture, Model, Preprocess
from tests import random_outside
from tests.mirror import Mirror
from tests.networks import random_input
from tests.plain_hooks import (
    Truth,
    close,
    equal,
    equal_outputs,
    plain_hooks,
    plain_pass,
    same_values,
    seen_pixels,
)
from tests.random_networks import SIDE, Description, lived, nearby
from tests.random_tokens import Arranged, are_where_they_lie
from tests.unharmed import conditions, one_call

_LENSES = ("health", "summary", "inputs", "trace", "kernels")
_HALF = SIDE // 2


@dataclass(frozen=True)
class Outcome:
    """What was wrong, what ended in a traceback that is no `HookVizError`, what was refused."""

    wrong: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    runs: bool = True


def trial(description: Description) -> Outcome:
    """Everything that HookViz does with one network, held against plain hooks on another build."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _Trial(description).outcome()


class _Trial:
    def __init__(self, description: Description) -> None:
        self._description = description
        self._dtype = getattr(torch, description.dtype)
        self._exact = description.is_exact
        self._wrong: list[str] = []
        self._raw: list[str] = []
        self._refused: list[str] = []
        self._images = [random_input(1, SIDE) - 1, random_input(2, SIDE) + 1, random_input(3, SIDE)]

    def outcome(self) -> Outcome:
        """Run all of it."""
        random_outside.forget()
        try:
            truths = [self._truth(self._description, image) for image in self._images]
            moves = self._moves()
            twin = lived(self._description)
            random_outside.forget()
            own = lived(self._description)
        except Exception as error:  # noqa: BLE001 - whatever it is, this network is none
            return Outcome(refused=(f"does not run: {error}",), runs=False)
        before = conditions(own)
        model = self._wrapped(own)
        if conditions(own) != before:
            self._wrong.append("wrap changes something")
        if model is not None and moves:
            self._mirrored(model, own, twin)
        elif model is not None:
            self._look(model, truths)
        self._taken_back(own, twin, before, moves=moves)
        return Outcome(tuple(self._wrong), tuple(self._raw), tuple(self._refused))

    def _truth(self, description: Description, image: Tensor) -> Truth:
        """What hooks see in the first pass of a network of its own."""
        with random_outside.apart():
            return plain_hooks(lived(description), image, self._dtype)

    def _moves(self) -> bool:
        """Whether a call leaves something that the next one computes by, and that is no buffer."""
        network = lived(self._description)
        with random_outside.apart():
            passes = []
            for index in (1, 1, 0, 1):
                with one_call(network):
                    passes.append(plain_hooks(network, self._images[index], self._dtype))
        first, again, _, last = passes
        still = same_values(first, again) and same_values(first, last)
        return not (still or self._description.is_random)

    def _mirrored(self, model: Model, own: nn.Module, twin: nn.Module) -> None:
        """What moves with each call is held against a twin that is called as often, on the same."""
        mirror = Mirror(own, twin)
        with self._only_errors_of_ours("mirrored"):
            for index, image in enumerate(self._images):
                cap = hookviz.capture(model, image)
                truth = mirror.truth()
                self._compare(f"image {index}, as often", cap, truth, truth.convs)
        mirror.close()
        self._lenses(model, Budget(1 << 24).cache(1 << 24), judged=False)

    def _taken_back(
        self, own: nn.Module, twin: nn.Module, before: dict[str, Any], *, moves: bool
    ) -> None:
        """What HookViz has set is as before, and the network goes on as one that was called."""
        after = conditions(own)
        if self._description.is_random:
            after.pop("a global generator")  # plain passes of this trial have moved it
        self._wrong += [f"a look changes {name}" for name in after if before[name] != after[name]]
        if moves or self._description.is_random:
            return
        with random_outside.apart(), suppress(Exception), one_call(twin):
            plain_pass(twin, self._images[0], self._dtype)
        mine = self._drawing_the_same(own)
        with random_outside.apart():
            theirs = self._drawing_the_same(twin)
        if isinstance(mine, str) and mine != theirs:
            self._wrong.append(f"the person's network raises from then on: {mine}")
        elif not equal_outputs(mine, theirs):
            self._wrong.append("the person's network computes something else from then on")

    def _drawing_the_same(self, network: nn.Module) -> Any:
        """What a pass puts out from a certain place of the generator; what it raises, in words."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            try:
                return plain_pass(network, self._images[0], self._dtype)
            except Exception as error:  # noqa: BLE001 - with other weights it may by itself
                return str(error)

    def _look(self, model: Model, truths: list[Truth]) -> None:
        cache = Budget(1 << 24).cache(1 << 24)
        if self._description.is_random:
            with self._only_errors_of_ours("random"):
                hookviz.capture(model, self._images[0], cache=cache)
        else:
            self._captures(model, truths, cache)
            self._batch(model, truths)
            self._occlusion(model)
            self._neighbours(cache)
        self._layouts(model)
        if "padding" in self._description.kinds:
            self._fields(model)
        self._lenses(model, cache)

    def _wrapped(self, module: nn.Module) -> Model | None:
        model: Model | None = None
        steps = None if self._description.guessed else Preprocess(resize=SIDE, crop=SIDE)
        with self._only_errors_of_ours("wrap"):
            model = hookviz.wrap(module, steps)
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

    def _batch(self, model: Model, truths: list[Truth]) -> None:
        """Three images at once: what each is alone, or its part of what the batch is."""
        if self._description.dtype == "bfloat16":
            return  # rounds too much to compare
        images = torch.cat(self._images)
        try:
            together = self._truth(self._description, images)
        except Exception:  # noqa: BLE001 - not every network takes several images
            together = Truth({}, (), None)
        names = [_layer(address) for address in truths[0].activations]
        try:
            caps = hookviz.capture_batch(model, images, list(dict.fromkeys(names)))
        except hookviz.HookVizError:
            return  # a layer need not put out a part for each
        except Exception as error:  # noqa: BLE001 - that there are none is what is tried
            self._raw.append(f"capture_batch: {type(error).__name__}: {error}")
            return
        for number, (cap, truth) in enumerate(zip(caps, truths, strict=True)):
            for address in cap:
                alone = truth.activations.get(address)
                beside = _parts(together.activations.get(address), alone, number)
                ours = cap[address].raw.flatten()
                if not any(_rounds_to(ours, theirs) for theirs in (alone, *beside)):
                    self._wrong.append(f"capture_batch, image {number}: {address} differs")

    def _occlusion(self, model: Model) -> None:
        """How far a score falls by each quarter that is hidden, as passes of one image tell."""
        image = self._images[1]
        hidden = [image.clone() for _ in range(4)]
        for number, each in enumerate(hidden):
            top, left = _HALF * (number // 2), _HALF * (number % 2)
            each[..., top : top + _HALF, left : left + _HALF] = 0
        scores = [self._scores(each) for each in (image, *hidden)]
        if self._description.dtype == "bfloat16" or any(
            each is None or not each.isfinite().all() for each in scores
        ):
            return
        first = torch.stack([each[0, 0].double() for each in scores if each is not None])
        with self._only_errors_of_ours("occlusion"):
            options: dict[str, Any] = {"target": 0, "window": _HALF, "stride": _HALF}
            drops = hookviz.run_lens("occlusion", model, image, **options).values["drops"]
            ours, theirs = torch.from_numpy(drops).flatten(), first[0] - first[1:]
            if not torch.allclose(ours, theirs, 0, 1e-4 * (1 + float(first.abs().max()))):
                self._wrong.append(f"occlusion: {ours.tolist()}, not {theirs.tolist()}")

    def _scores(self, image: Tensor) -> Tensor | None:
        with random_outside.apart():
            output = plain_pass(lived(self._description), image, self._dtype)
        return output if isinstance(output, Tensor) and output.ndim == 2 else None

    def _layouts(self, model: Model) -> None:
        """What is drawn as maps has its cells where the block that it is in knows them to be."""
        places: dict[str, Tensor] = {}
        with random_outside.apart():
            network = lived(self._description)
            for name, module in network.named_modules():
                if isinstance(module, Arranged):
                    module.register_forward_hook(partial(_note_places, places, Counter(), name))
            with suppress(Exception):  # it does go through without a hook
                plain_pass(network, self._images[1], self._dtype)
        for layer in dict.fromkeys(map(_layer, places)):
            with suppress(hookviz.HookVizError):  # such as where another way is taken
                for address, found in hookviz.capture(model, self._images[1], layer).items():
                    place = places.get(address.partition("[")[0])
                    if place is not None and not are_where_they_lie(found, place):
                        self._wrong.append(f"{address} is drawn as {found.layout}")

    def _fields(self, model: Model) -> None:
        """No receptive field is smaller than what a gradient reaches."""
        with random_outside.apart():
            seen = seen_pixels(lived(self._description), self._images[1], self._dtype)
        with self._only_errors_of_ours("receptive fields"):
            fields = (
                receptive_fields(model, hookviz.prepare(model, self._images[1])) if seen else {}
            )
            for address in seen.keys() & fields.keys():
                rows, columns = fields[address].cells
                top, left, bottom, right = fields[address].box(rows // 2, columns // 2)
                inside = torch.zeros(SIDE, SIDE, dtype=torch.bool)
                inside[top:bottom, left:right] = True
                if (seen[address] & ~inside).any():
                    self._wrong.append(f"the receptive field of {address} is too small")

    def _neighbours(self, cache: ByteCache) -> None:
        """A network that differs in one thing, with the same cache and name."""
        for other in list(nearby(self._description))[self._description.seed :: 5]:
            try:
                theirs = self._truth(other, self._images[1])
            except Exception:  # noqa: BLE001, S112 - no network
                continue
            beside = self._wrapped(lived(other))
            if beside is None:
                continue
            with self._only_errors_of_ours("neighbour"):
                cap = hookviz.capture(beside, self._images[1], cache=cache)
                self._compare(f"neighbour {other}", cap, theirs, theirs.convs)

    def _lenses(self, model: Model, cache: ByteCache, *, judged: bool = True) -> None:
        with self._only_errors_of_ours("verify"):
            verdict = hookviz.run_lens("verify", model, self._images[1], cache=cache).panels[0]
            assert isinstance(verdict, TextPanel)
            if judged and (verdict.tone == "good") is self._is_random():
                self._wrong.append(f"the seal says: {verdict.text}")
        for slug in _LENSES[self._description.seed :: 4]:
            with self._only_errors_of_ours(slug):
                hookviz.run_lens(slug, model, self._images[1], cache=cache)

    def _is_random(self) -> bool:
        """Whether two passes over the image differ: noise may lie on a way not taken."""
        if not self._description.is_random:
            return False
        passes = [self._truth(self._description, self._images[1]) for _ in range(2)]
        return not same_values(*passes)

    def _compare(self, when: str, cap: Capture, truth: Truth, expected: tuple[str, ...]) -> None:
        if list(cap) != list(expected):
            self._wrong.append(f"{when}: captured {list(cap)}, not {list(expected)}")
            return
        for address in expected:
            if not self._fits(cap[address].raw, truth.activations[address]):
                self._wrong.append(f"{when}: {address} differs")
            if not _are_its_numbers(cap[address]):
                self._wrong.append(f"{when}: the maps of {address} have other numbers")
        theirs = truth.scores
        if cap.logits is not None and (theirs is None or not self._fits(cap.logits, theirs)):
            self._wrong.append(f"{when}: the scores differ")

    def _fits(self, ours: Tensor, theirs: Tensor) -> bool:
        values = _values(theirs)
        if ours.shape not in _shapes(values):
            return False
        values = values.reshape(ours.shape)
        if self._exact:
            return equal(ours, values)
        return close(ours, values, 0.03 if self._dtype == torch.bfloat16 else 1e-4)

    @contextmanager
    def _only_errors_of_ours(self, when: str) -> Iterator[None]:
        try:
            yield
        except hookviz.HookVizError as error:
            self._refused.append(f"{when}: {error}")
        except Exception as error:  # noqa: BLE001 - that there are none is what is tried
            self._raw.append(f"{when}: {type(error).__name__}: {error}")


def _note_places(
    places: dict[str, Tensor],
    calls: Counter[str],
    name: str,
    block: Arranged,
    given: tuple[Tensor],
    _output: Tensor,
) -> None:
    """Note which cell stands where in what the layers of a block put out, by their addresses."""
    call = f"#{calls[name]}" if calls[name] else ""
    calls[name] += 1
    for layer, cells in block.cells(*given[0].shape[2:]).items():
        places[f"{name}.{layer}{call}"] = cells


def _are_its_numbers(recorded: Activation) -> bool:
    """Whether the maps are the numbers that the layer put out, but for those of no cell."""
    if recorded.raw.numel() > recorded.values.numel() and recorded.layout.order == WINDOWS:
        return True  # they reach past the map; `_layouts` looks at what is in it
    raw, dropped = recorded.raw, recorded.layout.prefix_tokens
    kept = raw[dropped:] if dropped else raw
    ours, theirs = recorded.values.flatten(), kept.flatten()
    if ours.is_complex():
        ours, theirs = torch.view_as_real(ours).flatten(), torch.view_as_real(theirs).flatten()
    return torch.equal(ours.sort().values.nan_to_num(), theirs.sort().values.nan_to_num())


def _layer(address: str) -> str:
    return address.partition("[")[0].partition("#")[0]


def _of_layer(addresses: tuple[str, ...], layer: str) -> tuple[str, ...]:
    return tuple(address for address in addresses if _layer(address) == layer)


def _values(tensor: Tensor) -> Tensor:
    return tensor if tensor.is_complex() else tensor.float()


def _shapes(tensor: Tensor) -> set[torch.Size]:
    """The shapes that it may be shown in: without the axis of the one image, wherever that is."""
    shape = tensor.shape
    shorter = [torch.Size((*shape[:n], *shape[n + 1 :])) for n, m in enumerate(shape) if m == 1]
    if len(shape) == 4 and shape[0] == 1:
        return set(shorter[:1])
    return {shape, *shorter}


def _parts(together: Tensor | None, alone: Tensor | None, number: int) -> list[Tensor]:
    """One image's part of what a batch of three makes, by the axis that is longer than alone.

    Where an image has several rows there they may lie behind each other, or the first of all images
    first.
    """
    if together is None or not together.ndim:
        return []
    if alone is None:  # alone the image goes another way, so that its axis is not known
        axes = [axis for axis, size in enumerate(together.shape) if size % 3 == 0]
        return [together, *(together.chunk(3, axis)[number] for axis in axes)]
    if together.ndim == alone.ndim:
        for axis, (many, one) in enumerate(zip(together.shape, alone.shape, strict=True)):
            if many == 3 * one:
                every = torch.arange(many)
                rows = (every[number * one : (number + 1) * one], every[number::3])
                return [together.index_select(axis, some) for some in rows]
    return []


def _rounds_to(ours: Tensor, theirs: Tensor | None) -> bool:
    return theirs is not None and close(ours, _values(theirs).flatten())
