"""Pictures as functions are those of the lenses, and do what they say in a plain pass."""

import numpy as np
import pytest

import hookviz
from hookviz.images.samples import samples

STAR = next(each.path for each in samples() if each.name == "star")
LAYER = "stage2.first.conv"


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def test_the_smallest_change_is_the_lenss_and_flips_a_plain_pass(shapes: hookviz.Model) -> None:
    change = hookviz.smallest_change(shapes, STAR, target="circle", steps=10, sure=60)
    lens = hookviz.run_lens(
        "toaster", shapes, STAR, target="circle", steps=10, sure=60, others=False
    )
    assert np.array_equal(change.picture, lens.values["picture"])
    assert change.found
    assert change.moved <= change.bound
    shares = shapes.network(change.model_input.tensor)[0].softmax(0)
    assert float(shares[shapes.categories.index("circle")]) >= 0.6


def test_a_dream_is_the_lenss_and_raises_its_layer(shapes: hookviz.Model) -> None:
    dream = hookviz.dream(shapes, STAR, layer=LAYER, steps=6)
    lens = hookviz.run_lens("dream", shapes, STAR, layer=LAYER, steps=6)
    assert np.array_equal(dream.picture, lens.values["picture"])
    assert dream.value == lens.values["after"] > dream.history[0]
    assert len(dream.history) == 6


def test_an_inversion_is_the_lenss_and_progress_ends_at_one(shapes: hookviz.Model) -> None:
    told: list[float] = []
    rebuilt = hookviz.invert(shapes, STAR, layer=LAYER, steps=6, progress=told.append)
    lens = hookviz.run_lens("inversion", shapes, STAR, layer=LAYER, steps=6)
    assert np.array_equal(rebuilt.picture, lens.values["pictures"][0])
    assert rebuilt.distance == lens.values["distances"][0] < 1
    assert told == sorted(told)
    assert told[-1] == 1
