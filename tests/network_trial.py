"""One random network held against plain hooks: captures, caches, lenses, and its state.

Plain hooks see the same pass over the same input from the same state. Where a network computes the
same whenever it is called, that is a pass of another build of it; else it is HookViz's very pass.

A long file: one trial, each of whose methods is one thing that HookViz does with a network.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.drawing.panels import TextPanel
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.types import WINDOWS, Activation, Capture, Model, Preprocess
from tests import random_outside
from tests.networks import random_input
from tests.plain_hooks import (
    Pass,
    Truth,
    close,
    equal,
    equal_outputs,
    every_pass,
    plain_hooks,
    plain_pass,
    seen_pixels,
)
from tests.random_answers import MEANINGS
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
        self._meaning = MEANINGS.get(description.form)
        self._exact = description.is_exact
        self._repeats = description.is_repeatable
        self._passes: list[Pass] = []
        self._wrong: list[str] = []
        self._raw: list[str] = []
        self._refused: list[str] = []
        self._images = [random_input(1, SIDE) - 1, random_input(2, SIDE) + 1, random_input(3, SIDE)]

    def outcome(self) -> Outcome:
        """Run all of it."""
        random_outside.forget()
        try:
            self._runs_by_itself()
            twin = lived(self._description)
            random_outside.forget()
            own = lived(self._description)
        except Exception as error:  # noqa: BLE001 - whatever it is, this network is none
            return Outcome(refused=(f"does not run: {error}",), runs=False)
        before = conditions(own)
        model = self._wrapped(own)
        if conditions(own) != before:
            self._wrong.append("wrap changes something")
        if model is not None:
            self._look(model)
        self._taken_back(own, twin, before)
        return Outcome(tuple(self._wrong), tuple(self._raw), tuple(self._refused))

    def _runs_by_itself(self) -> None:
        with torch.random.fork_rng(devices=[]):
            for image in self._images:
                self._fresh(self._description, image)

    def _fresh(self, description: Description, image: Tensor) -> Truth:
        """What hooks see in the first pass of a network of its own."""
        with random_outside.apart():
            return plain_hooks(lived(description), image, self._dtype)

    def _truths(self, image: Tensor) -> list[Truth]:
        """All that a capture of this image may show; nothing where it does not run."""
        if self._repeats:
            with suppress(Exception):  # not every network takes several images
                return [self._fresh(self._description, image)]
            return []
        given = image.to(self._dtype)
        return [each.truth for each in self._passes if torch.equal(each.given, given)]

    def _taken_back(self, own: nn.Module, twin: nn.Module, before: dict[str, Any]) -> None:
        """What HookViz has set is as before, and the network goes on as one that was called."""
        after = conditions(own)
        self._wrong += [f"a look changes {name}" for name in after if before[name] != after[name]]
        if not self._repeats:
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

    def _look(self, model: Model) -> None:
        cache = Budget(1 << 24).cache(1 << 24)
        with ExitStack() as stack:
            if not self._repeats:
                self._passes = stack.enter_context(every_pass(model.network))
            self._captures(model, cache)
            self._batch(model)
        if self._repeats:
            self._answer(model)
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
            model = hookviz.wrap(module, steps, output=self._meaning and self._meaning.output)
        return model  # noqa: RET504 - nothing comes back where an error was caught

    def _captures(self, model: Model, cache: ByteCache) -> None:
        """Images one after the other, in several ways, at last from the cache."""
        for turn, index in enumerate((1, 0, 2, 1)):
            image = self._images[index]
            names = self._layers(image)
            alone = names[len(names) // 2]
            ways: list[tuple[str, Any, dict[str, Any]]] = [
                ("kept", None, {"cache": cache}),
                ("every layer", names, {"cache": cache, "logits": turn > 0}),
                ("conv layers", None, {}),
                ("without scores", None, {"logits": False}),
                (alone, alone, {"logits": False}),
            ]
            for what, layers, options in ways[: (5, 4, 1, 2)[turn]]:
                when = f"image {index}, {what}"
                with self._only_errors_of_ours(when):
                    cap = hookviz.capture(model, image, layers, **options)
                    self._compare(when, cap, self._truths(image), layers)
                    if self._repeats and turn == 3 and cap.forward_passes:
                        self._wrong.append(f"{when}: was not in the cache")

    def _layers(self, image: Tensor) -> list[str]:
        """The layers that an image goes through in a new network."""
        with torch.random.fork_rng(devices=[]):
            truth = self._fresh(self._description, image)
        return list(dict.fromkeys(map(_layer, truth.activations)))

    def _batch(self, model: Model) -> None:
        """Three images at once: what each is alone, or its part of what the batch is."""
        if self._description.dtype == "bfloat16":
            return  # rounds too much to compare
        images = torch.cat(self._images)
        try:
            caps = hookviz.capture(model, images, self._layers(self._images[0]))
        except hookviz.HookVizError:
            return  # a layer need not put out a part for each
        except Exception as error:  # noqa: BLE001 - that there are none is what is tried
            self._raw.append(f"capture_batch: {type(error).__name__}: {error}")
            return
        together = self._truths(images)
        for number, cap in enumerate(caps):
            single = self._truths(self._images[number])
            for address in cap:
                alone = [each.activations.get(address) for each in single]
                beside = [
                    part
                    for each in together
                    for part in _parts(each.activations.get(address), alone[-1], number)
                ]
                ours = cap[address].raw.flatten()
                if not any(_rounds_to(ours, theirs) for theirs in (*alone, *beside)):
                    self._wrong.append(f"capture_batch, image {number}: {address} differs")

    def _answer(self, model: Model) -> None:
        """What is shown of an answer that means something else than scores before a softmax."""
        if self._meaning is None:
            return
        image = self._images[1]
        with random_outside.apart():
            raw = plain_pass(lived(self._description), image, self._dtype)
        with self._only_errors_of_ours("answer"):
            answer = hookviz.capture(model, image, ()).answer
            if answer is None:
                self._wrong.append("no answer")
                return
            expected = self._meaning.values(raw).float()
            is_right = close(
                answer.values, expected, 0.03 if self._dtype == torch.bfloat16 else 1e-4
            )
            if not is_right or answer.is_share != self._meaning.is_share:
                self._wrong.append(f"the answer is shown as {answer.values}, not as {expected}")

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
            target = int(self._description.form == "OneLogit")  # it speaks for the second of two
            options: dict[str, Any] = {"target": target, "window": _HALF, "stride": _HALF}
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
                receptive_fields(model, hookviz.prepare_input(model, self._images[1]))
                if seen
                else {}
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
                theirs = self._fresh(other, self._images[1])
            except Exception:  # noqa: BLE001, S112 - no network
                continue
            beside = self._wrapped(lived(other))
            if beside is None:
                continue
            with self._only_errors_of_ours("neighbour"):
                cap = hookviz.capture(beside, self._images[1], cache=cache)
                self._compare(f"neighbour {other}", cap, [theirs])

    def _lenses(self, model: Model, cache: ByteCache) -> None:
        with self._only_errors_of_ours("verify"):
            verdict = hookviz.run_lens("verify", model, self._images[1], cache=cache).panels[0]
            assert isinstance(verdict, TextPanel)
            if self._repeats and verdict.tone != "good":
                self._wrong.append(f"the seal says: {verdict.text}")
        for slug in _LENSES[self._description.seed :: 4]:
            with self._only_errors_of_ours(slug):
                hookviz.run_lens(slug, model, self._images[1], cache=cache)

    def _compare(
        self, when: str, cap: Capture, truths: list[Truth], layers: list[str] | str | None = None
    ) -> None:
        expected = [_addresses(truth, layers) for truth in truths]
        if list(cap) not in expected:
            self._wrong.append(f"{when}: captured {list(cap)}, not {expected[-1:]}")
            return
        for address in cap:
            theirs = [each.activations.get(address) for each in truths]
            if not any(self._fits(cap[address].raw, each) for each in theirs):
                self._wrong.append(f"{when}: {address} differs")
            if not _are_its_numbers(cap[address]):
                self._wrong.append(f"{when}: the maps of {address} have other numbers")
        scores = [each.scores for each in truths]
        if self._meaning is not None:
            return  # the answer is looked at by itself
        if cap.logits is not None and not any(self._fits(cap.logits, each) for each in scores):
            self._wrong.append(f"{when}: the scores differ")

    def _fits(self, ours: Tensor, theirs: Tensor | None) -> bool:
        if theirs is None:
            return False
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


def _addresses(truth: Truth, layers: list[str] | str | None) -> list[str]:
    """Those that a capture of these layers has, in order of return; of conv layers for None."""
    if layers is None:
        return list(truth.convs)
    asked = {layers} if isinstance(layers, str) else {*layers}
    return [address for address in truth.activations if _layer(address) in asked]


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
    """One image's part of what a batch of three makes, by an axis that is longer than alone.

    By any axis where alone it goes another way. Where an image has several rows there they may lie
    behind each other, or the first of all images first.
    """
    if together is None:
        return []
    sizes = enumerate(together.shape)
    thirds = [(axis, size // 3) for axis, size in sizes if size and size % 3 == 0]
    if alone is not None and alone.ndim == together.ndim:
        longer = [(axis, one) for axis, one in thirds if alone.shape[axis] == one]
        thirds = longer or thirds
    parts = []
    for axis, one in thirds:
        every = torch.arange(3 * one)
        rows = (every[number * one : (number + 1) * one], every[number::3])
        parts += [together.index_select(axis, some) for some in rows]
    return [together, *parts]


def _rounds_to(ours: Tensor, theirs: Tensor | None) -> bool:
    return theirs is not None and close(ours, _values(theirs).flatten())
