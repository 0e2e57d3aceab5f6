"""What an error recommends works: twenty kinds of networks, every lens, and their hints followed.

A hint is followed as a reader would who knows nothing else: a name in quotes that is a layer's is
taken for the layer, a size for the input's, a method for the method, and the same is done again.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice, OneOf
from tests.kinds_of_networks import KINDS
from tests.pictures import picture


@dataclass(frozen=True)
class Look:
    """A call that may be refused, and what of it a hint can change."""

    name: str
    run: Callable[..., Any]
    image: Any
    given: dict[str, Any]
    layer: str = "layer"

    def again(self, **changes: Any) -> None:
        """Do it again with other arguments."""
        self.run(changes.pop("image", self.image), **{**self.given, **changes})


def looks(model: hookviz.Model, image: Tensor) -> Iterator[Look]:
    """All the public functions that refuse something, with what they do not take."""

    def captured(given: Any, **options: Any) -> Any:
        return hookviz.capture(model, given, **options)

    names = [name for name, _ in model.network.named_modules() if name]
    yield Look("capture", captured, image, {"layers": "haed"}, "layers")
    yield Look("capture of a picture", captured, picture(), {})
    more_channels = torch.rand(1, image.shape[1] + 1, *image.shape[2:])
    small = torch.rand(*image.shape[:2], *[2] * (image.ndim - 2))
    for given in (image, more_channels, small):
        yield Look("capture of a tensor", captured, given, {})
    yield Look("batch", lambda given: hookviz.capture(model, [given, given]), image, {})
    yield Look("list_layers", lambda _given: hookviz.list_layers(model), image, {})
    yield Look(
        "segmentation_maps", lambda given: hookviz.segmentation_maps(model, given), image, {}
    )
    for lens in hookviz.list_lenses():
        yield from looks_through(lens, model, image, ["haed", *names[-1:]])


CHOICES = {("grad-cam", "method"), ("integrated-gradients", "baseline")}


def looks_through(
    lens: hookviz.Lens, model: hookviz.Model, image: Tensor, wrong_layers: list[str]
) -> Iterator[Look]:
    """A lens with its defaults, with layers and classes that are none, and with each method."""

    def run(given: Any, **chosen: Any) -> Any:
        return hookviz.run_lens(lens.slug, model, given, **chosen)

    slow = {"maximize", "dream", "inversion", "integrated-gradients"}
    quick = {"steps": 2} if lens.slug in slow else {}
    plain = Look(lens.slug, run, image, quick)
    yield plain
    for parameter in lens.parameters:
        if isinstance(parameter, LayerChoice) and parameter.name != "downstream":
            for wrong in wrong_layers:
                given = {**quick, parameter.name: wrong}
                yield replace(plain, given=given, layer=parameter.name)
        if isinstance(parameter, ClassChoice) and lens.slug != "toaster":  # asks for a picture
            yield replace(plain, given={**quick, parameter.name: 999})
        if isinstance(parameter, OneOf) and (lens.slug, parameter.name) in CHOICES:
            for choice in parameter.choices:
                yield replace(plain, given={**quick, parameter.name: choice})


SIZE = r"(?:made for|such as|takes one of) (\d+(?:×\d+)+)\."
CLASSES = r"(\w+)=999 is not a class of .*: (\d+) to (\d+)\."
LENSES = r"[Tt]he lens(?:es)? ([a-z-]+(?: and [a-z-]+)?)(?: take|\.)"
CATALOG = r"such as (?:torchvision's )?([a-z]\w+)\."
Hint = Callable[[], object]


def hints(said: str, look: Look, model: hookviz.Model) -> Iterator[Hint]:
    """What an error recommends, each as a call that has to go through."""
    yield from named_layers(said, look, model)
    yield from named_inputs(said, look, model)
    for method in re.findall(r"method '([^']*)'", said):
        yield partial(look.again, method=method)
    if "'zero' works" in said:
        yield partial(look.again, baseline="zero")
    for parameter, low, high in re.findall(CLASSES, said):
        yield from (partial(of_class, look, parameter, int(each)) for each in (low, high))
    for several in re.findall(LENSES, said):
        for slug in several.split(" and "):
            yield partial(hookviz.run_lens, slug, model, look.image)
    yield from (partial(of_catalog, name, look) for name in re.findall(CATALOG, said))


def of_class(look: Look, parameter: str, index: int) -> None:
    """Ask for a class that is there; what else is wrong with the look has hints of its own."""
    with suppress(hookviz.HookVizError):
        look.again(**{parameter: index})
        return
    with pytest.raises(hookviz.HookVizError) as told:
        look.again(**{parameter: index})
    assert "is not a class" not in str(told.value)


def named_layers(said: str, look: Look, model: hookviz.Model) -> Iterator[Hint]:
    """Layers that are named, but for the one that was asked for."""
    own = dict(model.network.named_modules())
    for quoted in re.findall(r"'([^']*)'", said):
        if quoted not in own or quoted in look.given.values():
            continue
        if f"Layer {quoted!r} of {model.title}" in said or f"between layer {quoted!r}" in said:
            continue  # the default, which was refused
        if "which the lens gradients shows" in said:
            yield partial(hookviz.run_lens, "gradients", model, look.image, layer=quoted)
        else:
            yield partial(look.again, **{look.layer: quoted})


def named_inputs(said: str, look: Look, model: hookviz.Model) -> Iterator[Hint]:
    """Sizes of tensors, and ways to wrap the network."""
    for size in re.findall(SIZE, said):
        yield partial(hookviz.capture, model, torch.rand(1, *map(int, size.split("×"))))
    for part in re.findall(r"wrap\(network, output=('[^']*'|\(.*?\)|\d+)\)", said):
        wrapped = hookviz.wrap(model.network, output=literal_eval(part))
        yield partial(answered_by, wrapped, look.image)
    if "Without train=True it runs" in said:
        yield lambda: hookviz.capture(hookviz.wrap(model.network), look.image)


def answered_by(model: hookviz.Model, image: Any) -> None:
    """See that the part that a hint names answers."""
    hookviz.capture(model, image, ()).predictions()


@cache
def of_the_catalog() -> frozenset[str]:
    return frozenset(spec.name for spec in hookviz.list_models())


_tried: set[tuple[str, str]] = set()


def of_catalog(name: str, look: Look) -> None:
    """Do the same with a model of the catalog; one without weights here has to be in it."""
    assert name in of_the_catalog()
    if name == "shapesnet" and (name, look.name) not in _tried:
        _tried.add((name, look.name))
        if look.name in {lens.slug for lens in hookviz.list_lenses()}:
            quick = {key: value for key, value in look.given.items() if key == "steps"}
            hookviz.run_lens(look.name, hookviz.load_model(name), picture(), **quick)


def followed(look: Look, model: hookviz.Model, again: Hint, *, further: bool) -> str:
    """What is wrong with a hint; empty where it works, or leads `further` to one that does."""
    try:
        again()
    except hookviz.HookVizError as error:
        said = str(error)
        next_hints = list(hints(said, look, model)) if further else []
        if next_hints and not any(
            followed(look, model, each, further=False) for each in next_hints
        ):
            return ""
        return said
    return ""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep small networks from waiting for threads, which takes most of the time else."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_what_an_error_recommends_works(kind: str) -> None:
    model, image = KINDS[kind].made(kind)
    failed = []
    for look in looks(model, image):
        try:
            look.again()
        except hookviz.HookVizError as error:
            said = str(error)
        else:
            continue
        wrong = [followed(look, model, each, further=True) for each in hints(said, look, model)]
        failed += [f"{look.name} {look.given}: {said} → {each}" for each in wrong if each]
    assert not failed, "\n".join(failed)
