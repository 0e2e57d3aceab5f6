import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.comparing.pairs import pairs_of
from hookviz.types import Capture, Model
from tests.networks import as_model, random_input, seeded


class Forked(nn.Module):
    """A part that returns a dict, twice, and one that returns a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.fork = Fork()
        self.pair = Pair()

    def forward(self, images: Tensor) -> Tensor:
        values = self.fork(images)
        again = self.fork(values["low"])
        left, right = self.pair(again["high"])
        result: Tensor = left + right
        return result


class Fork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        values = self.conv(images)
        return {"low": values, "high": -values[..., ::2, ::2]}


class Pair(nn.Module):
    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return values + 1, values * 2


def names(a: Capture, b: Capture, *layers: str) -> list[tuple[str, str]]:
    pairs, _ = pairs_of(a, b, *layers)
    return [(str(each.address), str(other.address)) for each, other in pairs]


@pytest.fixture
def forked() -> Capture:
    model, layers = as_model(seeded(Forked)), ["fork", "fork.conv", "pair"]
    cap: Capture = hookviz.capture(model, random_input(0), layers)
    return cap


def test_calls_and_parts_stand_beside_their_own(forked: Capture) -> None:
    addresses = [
        *("fork.conv", "fork[low]", "fork[high]", "fork.conv#1", "fork#1[low]", "fork#1[high]"),
        *("pair[0]", "pair[1]"),
    ]
    assert names(forked, forked) == [(name, name) for name in addresses]
    assert names(forked, forked, "fork.conv#1") == [("fork.conv#1",) * 2]
    assert names(forked, forked, "pair") == [("pair[0]",) * 2, ("pair[1]",) * 2]


def test_a_name_alone_is_the_first_call_where_one_is_written_so(forked: Capture) -> None:
    assert names(forked, forked, "fork.conv") == [("fork.conv", "fork.conv")]


def test_a_named_pair_is_matched_whatever_call_and_part(forked: Capture) -> None:
    assert names(forked, forked, "fork.conv", "fork#1[low]") == [("fork.conv", "fork#1[low]")]
    assert names(forked, forked, "pair[0]", "pair[1]") == [("pair[0]", "pair[1]")]


def test_two_names_pair_their_calls_and_parts() -> None:
    def twice() -> nn.Module:
        return nn.Sequential(shared := Fork(), Low(), shared, Low(), nn.Conv2d(3, 3, 1))

    class Low(nn.Module):
        def forward(self, values: dict[str, Tensor]) -> Tensor:
            return values["low"]

    a = hookviz.capture(as_model(seeded(twice)), random_input(0), ["0"])
    b = hookviz.capture(as_model(seeded(Forked)), random_input(1), ["fork"])
    parts = ("[low]", "[high]", "#1[low]", "#1[high]")
    assert names(a, b, "0", "fork") == [(f"0{part}", f"fork{part}") for part in parts]


def test_what_one_of_them_lacks_is_left_out_and_told(tiny: Model) -> None:
    whole = hookviz.capture(tiny, random_input(0), ["conv1", "conv2", "relu"])
    part = hookviz.capture(tiny, random_input(1), ["conv1", "head"])
    pairs, left_out = pairs_of(whole, part)
    assert [str(each.address) for each, _ in pairs] == ["conv1"]
    assert set(left_out) == {"relu", "conv2", "relu#1"}
    assert set(left_out.values()) == {"B has nothing under that address"}


def test_shapes_that_differ_are_told_with_what_can_be_compared(tiny: Model) -> None:
    a = hookviz.capture(tiny, random_input(0))
    small = hookviz.capture(tiny, random_input(1, 12))
    with pytest.raises(hookviz.HookVizError) as caught:
        pairs_of(a, small)
    assert "conv1: A has 4×16×16 and B 4×12×12; conv2: A has 6×7×7 and B 6×5×5" in str(caught.value)
    assert "The inputs are 3×16×16 and 3×12×12: capture both in one size." in str(caught.value)
    with pytest.raises(hookviz.HookVizError) as caught:
        pairs_of(a, a, "conv1", "conv2")
    assert "A has 4×16×16 and B 6×7×7 in conv2" in str(caught.value)
    assert "Of one shape are A's conv1 and B's conv1, A's conv2 and B's conv2" in str(caught.value)


def test_networks_without_a_shape_in_common_are_told_what_compares_any(tiny: Model) -> None:
    other = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 5, 3))))
    with pytest.raises(hookviz.HookVizError, match=r"hookviz\.similarity compares layers of any"):
        pairs_of(hookviz.capture(tiny, random_input(0)), hookviz.capture(other, random_input(0)))


def test_names_that_are_nowhere_have_their_nearest(tiny: Model) -> None:
    a = hookviz.capture(tiny, random_input(0))
    with pytest.raises(hookviz.UnknownLayerError, match=r"of Tiny called 'conv3'.*conv1"):
        pairs_of(a, a, "conv3")
    with pytest.raises(hookviz.UnknownLayerError, match="'conv9'"):
        pairs_of(a, a, "conv1", "conv9")


class Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fourier = Fourier()
        self.conv = nn.Conv2d(3, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.conv(self.fourier(images).abs())
        return result


class Fourier(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = torch.fft.fft2(images)
        return values


def test_complex_numbers_are_left_out() -> None:
    capture = hookviz.capture(as_model(seeded(Complex)), random_input(0), ["fourier", "conv"])
    pairs, left_out = pairs_of(capture, capture)
    assert len(pairs) == 1
    assert left_out == {"fourier": "it holds complex numbers"}
