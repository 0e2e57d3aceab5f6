"""The whole network of networks that are hard to show: each is shown as it ran, or it is said."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.errors import HookVizError
from hookviz.explorer.question import Answer
from hookviz.types import Model, Preprocess
from tests.explorer.asking import ask, subject_of
from tests.networks import as_model, random_input, seeded
from tests.plain_hooks import every_output

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:FutureWarning")


def shown(model: Model) -> Answer:
    return ask(subject_of(model), "whole")


def lines(answer: Answer) -> set[tuple[str, str]]:
    """The lines of the outermost drawing, by names; empty at the image and at the end."""
    network = answer.facts["network"]
    names = [part["name"] for part in network["parts"]] + ["", ""]
    return {(names[begin], names[end]) for begin, end, _ in network["lines"]}


class Pieces(nn.Module):
    """A few layers, which subclasses call in their ways."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(2))
        self.head, self.of_vector = nn.Linear(3, 2), nn.Linear(4, 3)

    def scores(self, maps: Tensor) -> Tensor:
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


def test_a_thousand_layers_in_a_row_are_a_thousand_cards() -> None:
    answer = shown(as_model(nn.Sequential(*(nn.Conv2d(3, 3, 1) for _ in range(1000)))))
    parts = answer.facts["network"]["parts"]
    assert [part["name"] for part in parts] == [str(at) for at in range(1000)]
    chain = ["", *(part["name"] for part in parts), ""]
    assert lines(answer) == {*itertools.pairwise(chain)}
    assert [part["tile"] for part in parts] == [3 * at for at in range(1000)]


class Thrice(Pieces):
    def forward(self, images: Tensor) -> Tensor:
        return self.scores(self.a(self.a(self.a(images))))


def test_a_module_that_runs_three_times_has_three_cards_each_with_its_own_maps() -> None:
    model = as_model(seeded(Thrice))
    subject = subject_of(model)
    answer = ask(subject, "whole")
    cards = answer.facts["network"]["parts"]
    assert [card["name"] for card in cards] == ["a", "a#1", "a#2", "head"]
    assert len({card["output"] for card in cards[:3]}) == len({c["tile"] for c in cards[:3]}) == 3
    truth = every_output(model.network, subject.model_input.tensor)["a"]
    for card, values in zip(cards[:3], truth, strict=True):
        highest = values[0].flatten(1).amax(1)
        assert card["channels"] == highest.argsort(descending=True).tolist()
    assert lines(answer) == {("", "a"), ("a", "a#1"), ("a#1", "a#2"), ("a#2", "head"), ("head", "")}


class Does(Pieces):
    """Does what a function does with its pieces."""

    def __init__(self, do: Callable[..., Tensor]) -> None:
        super().__init__()
        self.do = do

    def forward(self, *given: Tensor) -> Tensor:
        return self.do(self, *given)


def test_what_else_than_the_image_is_given_comes_from_nowhere() -> None:
    image, steps = random_input(0), Preprocess(16, 16)
    for do, other, join, beside in (
        (lambda own, one, two: own.scores(own.a(one) * own.b(two)), random_input(1), "mul", "b"),
        (
            lambda own, one, two: own.scores(own.a(one) + own.of_vector(two)[..., None, None]),
            torch.ones(1, 4),
            "add",
            "of_vector",
        ),
    ):
        network = seeded(lambda do=do: Does(do))  # type: ignore[misc]
        model = hookviz.wrap(network, steps, example=(image, other))
        assert lines(shown(model)) == {
            *(("", "a"), ("a", join), (beside, join), (join, "head"), ("head", "")),
        }


class ByValues(Pieces):
    """How often a layer runs, and whether there is a shortcut, depends on what it sees."""

    def forward(self, images: Tensor) -> Tensor:
        maps = self.a(images)
        while maps.abs().amax() > 1:
            maps = self.b(maps) / 10
        return self.scores(maps + images if maps.mean() > 100 else maps)


class InDictionary(Pieces):
    def forward(self, images: Tensor) -> dict[str, Any]:
        first = self.a(images)
        return {"maps": [self.b(first)], "first": first, "image": images}


class InTorchScript(Pieces):
    def __init__(self) -> None:
        super().__init__()
        self.b = torch.jit.script(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()).eval())  # type: ignore[assignment]

    def forward(self, images: Tensor) -> Tensor:
        return self.scores(self.b(self.a(images)) + images)


class ThroughNumpy(Pieces):
    """Torch does not see where the second layer's input comes from."""

    def forward(self, images: Tensor) -> Tensor:
        return self.scores(self.b(torch.from_numpy(self.a(images).numpy().copy())) + images)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        (ByValues, {("", "a"), ("a", "b"), ("b", "head"), ("head", "")}),
        (InDictionary, {("", "a"), ("a", "b"), ("a", ""), ("b", ""), ("", "")}),
        (
            InTorchScript,
            {("", "a"), ("a", "b"), ("b", "add"), ("", "add"), ("add", "head"), ("head", "")},
        ),
        (ThroughNumpy, {("", "a"), ("b", "add"), ("", "add"), ("add", "head"), ("head", "")}),
    ],
)
def test_what_no_graph_holds_is_shown_as_it_ran(
    network: type[nn.Module], expected: set[tuple[str, str]]
) -> None:
    assert lines(shown(as_model(seeded(network)))) == expected


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: Does(lambda own, x: torch.conv2d(x, own.a.weight).mean((2, 3))),
            r"Does runs no layer to look at.* such as a torch.nn.Conv2d",
        ),
        (nn.Flatten, r"Flatten runs no layer whose channels could be shown. Lenses such as"),
        (
            lambda: Does(lambda own, x: own.scores(own.a(x) + own.b(x)[..., 1:])),
            r"Does can't take an input of .* after a, b: The size of tensor a",
        ),
        (lambda: torch.jit.script(nn.Flatten()), "wrap the module that it was scripted from"),
    ],
)
def test_what_cannot_be_shown_is_said(build: Callable[[], nn.Module], words: str) -> None:
    with pytest.raises(HookVizError, match=words):
        shown(as_model(build()))
