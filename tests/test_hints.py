"""What an error recommends works: twenty kinds of networks, every lens, and their hints followed.

A hint is followed as a reader would who knows nothing else: a name in quotes that is a layer's is
taken for the layer, a size for the input's, a method for the method, and the same is done again.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice, OneOf
from tests.kinds_of_networks import KINDS
from tests.pictures import picture

WITHOUT = object()


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
    wrong_layers = ["conv9", "haed", *names[:1], *names[-1:]]
    for wrong in wrong_layers[:2]:
        yield Look("capture", captured, image, {"layers": wrong}, "layers")
    yield Look("capture of a picture", captured, picture(), {})
    more_channels = torch.rand(1, image.shape[1] + 1, *image.shape[2:])
    small = torch.rand(*image.shape[:2], *[2] * (image.ndim - 2))
    for given in (image, more_channels, small):
        yield Look("capture of a tensor", captured, given, {})
    yield Look("batch", lambda given: hookviz.capture_batch(model, [given, given]), image, {})
    yield Look("list_layers", lambda _given: hookviz.list_layers(model), image, {})
    yield Look("class_maps", lambda given: hookviz.class_maps(model, given), image, {})
    for lens in hookviz.list_lenses():
        yield from looks_through(lens, model, image, wrong_layers)


def looks_through(
    lens: hookviz.Lens, model: hookviz.Model, image: Tensor, wrong_layers: list[str]
) -> Iterator[Look]:
    """A lens with its defaults, with layers and classes that are none, and with each method."""

    def run(given: Any, **chosen: Any) -> Any:
        return hookviz.run_lens(lens.slug, model, given, **chosen)

    quick = {"steps": 2} if lens.slug in {"maximize", "dream", "inversion"} else {}
    plain = Look(lens.slug, run, image, quick)
    yield plain
    for parameter in lens.parameters:
        if isinstance(parameter, LayerChoice):
            for wrong in wrong_layers:
                given = {**quick, parameter.name: wrong}
                yield replace(plain, given=given, layer=parameter.name)
        if isinstance(parameter, ClassChoice):
            yield replace(plain, given={**quick, parameter.name: 999})
        if isinstance(parameter, OneOf) and parameter.name in {"method", "baseline"}:
            for choice in parameter.choices:
                yield replace(plain, given={**quick, parameter.name: choice})


SIZE = r"\d+(?:×\d+)+"


def hints(said: str, look: Look, model: hookviz.Model) -> Iterator[Callable[[], object]]:
    """What an error recommends, each as a call that has to go through."""
    own = dict(model.network.named_modules())
    about = [text for text in re.findall(r"'([^']*)'", said) if text not in look.given.values()]
    for quoted in about:
        if quoted in own and f"{quoted!r} of {model.title}" not in said:
            if "which the lens gradients shows" in said:
                yield lambda name=quoted: hookviz.run_lens(  # type: ignore[misc]
                    "gradients", model, look.image, layer=name
                )
            elif look.name == "capture of a tensor":
                yield lambda name=quoted: hookviz.capture(model, look.image, name)  # type: ignore[misc]
            else:
                yield lambda name=quoted: look.again(**{look.layer: name})  # type: ignore[misc]
    for word in ("method", "baseline"):
        offered = re.findall(rf"method '([^']*)'" if word == "method" else r"'(zero)' works?", said)
        yield from (lambda value=each, key=word: look.again(**{key: value}) for each in offered)  # type: ignore[misc]
    for size in re.findall(rf"(?:made for|such as|takes one of) ({SIZE})\.", said):
        shape = tuple(map(int, size.split("×")))
        tensor = torch.rand(1, *shape)
        yield lambda given=tensor: hookviz.capture(model, given)  # type: ignore[misc]
    for low, high in re.findall(r"is not a class of .*: (\d+) to (\d+)\.", said):
        yield from (lambda at=int(each): look.again(target=at) for each in (low, high))  # type: ignore[misc]
    if "Without train=True it runs" in said:
        yield lambda: hookviz.capture(hookviz.wrap(model.network), look.image)
    for several in re.findall(r"[Tt]he lens(?:es)? ([a-z-]+(?: and [a-z-]+)?)(?: take|\.)", said):
        for slug in several.split(" and "):
            yield lambda lens=slug: hookviz.run_lens(lens, model, look.image)  # type: ignore[misc]
    for name in re.findall(r"such as ((?:torchvision's )?[a-z]\w+)\.", said):
        yield lambda known=name.removeprefix("torchvision's "): of_catalog(known, look)  # type: ignore[misc]


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
        for follow in hints(said, look, model):
            try:
                follow()
            except hookviz.HookVizError as error:
                failed.append(f"{look.name} {look.given}: {said} → {error}")
    assert not failed, "\n".join(failed)
