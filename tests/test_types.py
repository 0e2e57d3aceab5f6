"""Addresses, written so that each is told from every other, and windows put back."""

import copy
import gc
import itertools
import pickle

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.codegen.script_text import as_maps
from hookviz.language.speaking import speaking
from hookviz.types import ActivationKey, Layout, MissingAddressError
from tests.networks import Tiny, as_model, random_input, seeded
from tests.plain_hooks import every_output

NAMES = ("c", "c#1", "c[0]", "c[0]#1", "c]", "c\\", "c\\#1", "#", "layer1.0.conv1", "")
PATHS: tuple[tuple[str, ...], ...] = ((), ("0",), ("0", "1"), ("0][1",), ("a#1",), ("",), ("\\",))


def test_every_address_is_written_in_a_way_of_its_own_and_read_back() -> None:
    every = [ActivationKey(*each) for each in itertools.product(NAMES, (0, 1, 12), PATHS)]
    assert len({str(address) for address in every}) == len(every)
    for address in every:
        assert ActivationKey.read(str(address)) == address
    written = {
        "layer1.0.conv1": ActivationKey("layer1.0.conv1"),
        "relu#1": ActivationKey("relu", 1),
        "lstm[1][0]": ActivationKey("lstm", 0, ("1", "0")),
        "block#2[mask]": ActivationKey("block", 2, ("mask",)),
        "c\\#1": ActivationKey("c#1"),
        "t\\[0\\]#1[0]": ActivationKey("t[0]", 1, ("0",)),
    }
    assert {text: str(address) for text, address in written.items()} == {
        text: text for text in written
    }
    for text in ("c#", "c#x", "c[0", "c]0[", "c\\"):  # which no address is written as
        assert ActivationKey.read(text) == ActivationKey(text)


class _Colliding(nn.Module):
    """``c`` runs twice beside ``c#1``, and ``t`` puts out a tuple beside ``t[0]``."""

    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv2d(3, 3, 3, padding=1)
        self.add_module("c#1", nn.Conv2d(3, 3, 3, padding=1))
        self.t = _Twice()
        self.add_module("t[0]", nn.Conv2d(3, 3, 1))

    def forward(self, images: Tensor) -> Tensor:
        maps = self.get_submodule("c#1")(self.c(self.c(images)))
        one, other = self.t(maps)
        scores: Tensor = self.get_submodule("t[0]")(one + other).mean((2, 3))
        return scores


class _Twice(nn.Module):
    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        return maps * 2, maps * 3


def test_addresses_of_one_network_never_collide() -> None:
    network = seeded(_Colliding)
    model = as_model(network)
    image = random_input(3)
    seen = every_output(network, image)
    cap = hookviz.capture(model, image, ["c", "c#1", "t", "t[0]"])
    assert list(cap) == ["c", "c#1", "c\\#1", "t[0]", "t[1]", "t\\[0\\]"]
    assert torch.equal(cap["c"].values, seen["c"][0][0])
    assert torch.equal(cap["c#1"].values, seen["c"][1][0])
    assert torch.equal(cap["c\\#1"].values, seen["c#1"][0][0])
    assert torch.equal(cap["t[0]"].values, seen["t"][0][0][0])
    assert torch.equal(cap["t[1]"].values, seen["t"][0][1][0])
    assert torch.equal(cap["t\\[0\\]"].values, seen["t[0]"][0][0])
    alone = hookviz.capture(model, image, "c#1")
    assert torch.equal(alone["c#1"].values, seen["c#1"][0][0])  # by the layer's name
    assert hookviz.run_lens("verify", model, image).values["agrees"].all()
    edited = hookviz.run_lens("ablate", model, image, layer="c", channels="0", downstream="c#1")
    assert torch.equal(torch.from_numpy(edited.values["downstream_before"]), seen["c#1"][0][0])


def test_a_capture_knows_its_model_while_somebody_keeps_it(noise: Tensor) -> None:
    model = as_model(seeded(Tiny))
    cap = hookviz.capture(model, noise)
    (of_batch,) = hookviz.capture(model, [noise])
    assert cap.made_by is not None
    assert of_batch.made_by is not None
    assert cap.made_by() is of_batch.made_by() is model
    copies = pickle.loads(pickle.dumps(cap)), copy.deepcopy(cap)  # noqa: S301 - ours
    assert all(each.made_by is None for each in copies)
    assert all(torch.equal(each["conv1"].values, cap["conv1"].values) for each in copies)
    del model
    gc.collect()
    assert cap.made_by() is None


@pytest.mark.parametrize("shift", [(0, 0), (2, 1)])
@pytest.mark.parametrize("strided", [False, True])
def test_windows_are_put_back_of_one_image_and_of_several(
    shift: tuple[int, int], *, strided: bool
) -> None:
    images = torch.randn(3, 5, 6, 8)  # (N, C, H, W), of which windows of 3 × 2 are cut
    moved = images.roll((-shift[0], -shift[1]), (2, 3))
    if strided:
        parts = moved.view(3, 5, 3, 2, 2, 4).permute(0, 3, 5, 2, 4, 1)
    else:
        parts = moved.view(3, 5, 2, 3, 4, 2).permute(0, 2, 4, 3, 5, 1)
    windows = parts.reshape(-1, 6, 5)
    layout = Layout("windows", False, 0, (6, 8), (3, 2), shift, strided)
    assert torch.equal(layout.batch_maps(windows), images)
    assert torch.equal(layout.maps(windows[:8]), images[0])
    assert torch.equal(layout.maps(windows[:8].view(8, 3, 2, 5)), images[0])
    assert layout.map_shape((8, 6, 5)) == (5, 6, 8)
    assert layout.of((8, 6, 5)) == layout.of((8, 3, 2, 5)) == layout
    assert layout.of((9, 6, 5)) == layout.of((8, 2, 3, 5)) == Layout("vectors", batch=False)
    written: torch.Tensor = eval("windows" + as_maps(layout), {"windows": windows})  # noqa: S307
    assert torch.equal(written, images)


@pytest.mark.parametrize(
    ("address", "english", "chinese"),
    [
        (ActivationKey("relu"), "relu", "relu"),
        (ActivationKey("relu", 1), "relu, call 2", "relu（第 2 次调用）"),
        (ActivationKey("b", 11, ("mask",)), "b, call 12[mask]", "b（第 12 次调用）[mask]"),
        (ActivationKey("c#1", 1), "c\\#1, call 2", "c\\#1（第 2 次调用）"),
    ],
)
def test_people_read_calls_counted_from_one(
    address: ActivationKey, english: str, chinese: str
) -> None:
    assert address.in_words == english
    with speaking("zh_CN"):
        assert address.in_words == chinese


def test_an_address_that_is_missing_says_how_calls_are_counted() -> None:
    told = str(MissingAddressError("captured layer", "relu#2", ["conv", "relu", "relu#1"]))
    assert told.endswith("An address counts calls from 0: 'relu#1' is relu, call 2.")
    for name, known in (("relu#1", ["relu"]), ("rel", ["relu", "relu#1"])):
        assert "counts" not in str(MissingAddressError("captured layer", name, known))
    missing = MissingAddressError("layer", "a#2", ["a#1"])
    again = pickle.loads(pickle.dumps(missing))  # noqa: S301
    assert str(again).count("counts") == 1
