"""Estimates of memory, against the largest outputs of real networks."""

import pytest

import hookviz
from hookviz.machine.memory import MEGABYTE
from hookviz.serving.memory_needs import loading_need, own_pass_need, pass_need
from tests.pictures import picture


def test_a_pass_needs_five_of_its_largest_output_and_what_is_recorded() -> None:
    model = hookviz.load_model("resnet18", "random")
    need = pass_need(model, (3, 224, 224))
    assert need is not None
    largest = 4 * 64 * 112 * 112
    assert 5 * largest < need.nbytes < 5 * largest + 30 * MEGABYTE
    assert need.nbytes == need.least
    large = pass_need(model, (3, 1024, 1024))
    assert large is not None
    assert large.nbytes == 5 * 4 * 64 * 512 * 512 + 256 * MEGABYTE  # of a session at most


def test_what_keeps_all_takes_more_where_there_is_more() -> None:
    model = hookviz.load_model("resnet18", "random")
    need = pass_need(model, (3, 1024, 1024), keeps_all=True)
    assert need is not None
    assert need.nbytes > need.least + 100 * MEGABYTE


def test_an_input_and_the_models_own_size_tell_the_shape() -> None:
    model = hookviz.load_model("shapesnet")
    image = hookviz.prepare(model, picture(0, 64, 64), size=256)
    by_input, by_shape = pass_need(model, image), pass_need(model, (3, 256, 256))
    assert by_input is not None
    assert by_shape is not None
    assert by_input.nbytes == by_shape.nbytes
    own, square = own_pass_need(model), own_pass_need(model, 256)
    assert own is not None
    assert square is not None
    assert square.nbytes == by_shape.nbytes > own.nbytes


def test_what_the_network_can_not_take_needs_nothing() -> None:
    assert pass_need(hookviz.load_model("shapesnet"), (2, 64, 64)) is None


@pytest.mark.parametrize(
    ("room", "words"),
    [
        (0.26, "An input of 512×512 pixels fits."),
        (0.0001, "A smaller model takes less."),
        (-1, "A smaller model takes less."),
    ],
)
def test_a_smaller_input_is_named(room: float, words: str) -> None:
    need = pass_need(hookviz.load_model("resnet18", "random"), (3, 1024, 1024))
    assert need is not None
    assert need.smaller(int(room * need.least)) == words


def test_loading_needs_the_weights_and_more_where_they_are_read() -> None:
    assert loading_need(100_000_000, random=True).nbytes == pytest.approx(416e6)
    need = loading_need(100_000_000, random=False)
    assert need.nbytes == need.least == 800e6
    assert need.smaller(400_000_000) == "A model of at most 50 million parameters fits."
    assert need.smaller(-1) == "Try again in a moment."
