import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare_input
from hookviz.errors import HookVizError, SettingError, UnknownLayerError
from hookviz.images.samples import samples
from hookviz.lenses.contract import parameters
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.parameters import OneOf, WholeNumber
from hookviz.lenses.contract.running import list_lenses
from hookviz.models.loading import load_model
from hookviz.types import ActivationKey, Model
from tests.capturing.test_watched_pass import FUNCTIONS, IMAGE, article
from tests.networks import as_model, random_input


@pytest.fixture
def subject(tiny: Model) -> Subject:
    return Subject(tiny, prepare_input(tiny, random_input(0)), None)


def test_a_layer_has_a_default_and_must_exist(subject: Subject) -> None:
    assert parameters.LayerChoice().resolve(None, subject) == "conv2"
    assert parameters.LayerChoice(default="first").resolve(None, subject) == "conv1"
    assert parameters.LayerChoice(default="none").resolve(None, subject) is None
    assert parameters.LayerChoice(kind="all").resolve("relu", subject) == "relu"
    assert parameters.LayerChoice(kind="any").resolve("relu", subject) == "relu"
    with pytest.raises(UnknownLayerError, match="no conv layer"):
        parameters.LayerChoice().resolve("conv3", subject)
    with pytest.raises(SettingError, match=r"is a ReLU, and no convolution.* one is 'conv1'\."):
        parameters.LayerChoice().resolve("relu", subject)


def test_a_layer_is_chosen_by_whatever_fits_one(subject: Subject) -> None:
    takes = parameters.LayerChoice(kind="all")
    conv = subject.model.network.get_submodule("conv2")
    selectors: list[Any] = [
        *("*2", re.compile("conv2"), conv, ActivationKey("conv2")),
        lambda name, module: isinstance(module, nn.Conv2d) and name != "conv1",
    ]
    for selector in selectors:
        assert takes.resolve(selector, subject) == "conv2"
    assert takes.resolve(nn.ReLU, subject) == "relu"
    with pytest.raises(SettingError, match=r"fits 2 of the layers.*Choose from 'conv1', 'conv2'"):
        takes.resolve("conv*", subject)
    with pytest.raises(SettingError, match=r"fits 0 of the layers.*Choose from 'conv1', 'conv2'"):
        parameters.LayerChoice().resolve("rel*", subject)
    for unknown in ("conv9*", "conv[9]", re.compile("conv9")):
        with pytest.raises(UnknownLayerError, match="conv"):
            takes.resolve(unknown, subject)
    with pytest.raises(HookVizError, match="LSTM"):
        takes.resolve(nn.LSTM, subject)


def test_a_block_is_taken_where_the_lens_takes_any_layer() -> None:
    model = load_model("shapesnet")
    subject = Subject(model, prepare_input(model, random_input(0, 128)), None)
    takes_any = parameters.LayerChoice(kind="any", default="last map")
    names = [layer.name for layer in takes_any.choices(subject.trace)]
    runs = [name for name, _ in model.network.named_modules() if name]
    assert sorted(names) == sorted(runs)
    assert names.index("stage1") < names.index("stage1.first.conv")
    assert takes_any.resolve("stage2.first", subject) == "stage2.first"
    for default in ("first", "last", "last conv"):
        chosen = replace(takes_any, default=default).resolve(None, subject)
        assert chosen in [layer.name for layer in subject.trace.layers], "no block by default"
    assert takes_any.resolve(None, subject) == "stage3.relu_out"
    assert replace(takes_any, default="last conv").resolve(None, subject) == (
        parameters.LayerChoice().resolve(None, subject)
    )
    with pytest.raises(UnknownLayerError, match="Did you mean 'stage3'"):
        takes_any.resolve("stage33", subject)
    with pytest.raises(SettingError, match=r"is a ResidualStage, .* one is 'stage3\..*conv'"):
        parameters.LayerChoice().resolve("stage3", subject)


@pytest.mark.parametrize("kind", ["conv", "conv or linear", "all", "maps", "any"])
def test_of_a_function_the_nearest_layer_that_a_lens_takes_is_named(kind: str) -> None:
    model = article()
    subject = Subject(model, prepare_input(model, IMAGE), None)
    says = r"is a function that the code of Article calls.* one is 'conv2'\."
    for name in FUNCTIONS[2:]:
        assert name in subject.trace.recordable
        with pytest.raises(SettingError, match=says):
            parameters.LayerChoice(kind=kind).resolve(name, subject)


def test_a_class_is_the_likeliest_or_a_number_or_a_name(subject: Subject) -> None:
    assert subject.scored.logits is not None
    assert parameters.ClassChoice().resolve(None, subject) == int(subject.scored.logits.argmax())
    assert parameters.ClassChoice().resolve("3", subject) == 3
    for given in (5, -1, True):
        with pytest.raises(SettingError, match="0 to 4"):
            parameters.ClassChoice().resolve(given, subject)
    with pytest.raises(SettingError, match="no class 'cat'"):
        parameters.ClassChoice().resolve("cat", subject)


@pytest.mark.parametrize("given", [-1, 11, 2.5, "x", [], "nan"])
def test_numbers_can_be_text_and_are_refused_out_of_range(given: Any, subject: Subject) -> None:
    whole = parameters.WholeNumber(name="count", label="Count", low=0, high=10, default=3)
    assert (whole.resolve("7", subject), whole.resolve(None, subject)) == (7, 3)
    with pytest.raises(SettingError, match="whole number from 0 to 10"):
        whole.resolve(given, subject)
    real = parameters.RealNumber(name="share", label="Share", low=0, high=1, default=0.5)
    assert (real.resolve("0.25", subject), real.resolve(None, subject)) == (0.25, 0.5)
    with pytest.raises(SettingError, match="number from 0 to 1"):
        real.resolve(given, subject)


def test_words_and_switches(subject: Subject) -> None:
    word = parameters.OneOf(name="mode", label="Mode", choices=("keep", "drop"))
    assert (word.resolve(None, subject), word.resolve("drop", subject)) == ("keep", "drop")
    with pytest.raises(SettingError, match="'keep', 'drop'"):
        word.resolve("flip", subject)
    switch = parameters.Switch(name="clip", label="Clip")
    assert [switch.resolve(given, subject) for given in (None, "yes", False)] == [
        False,
        True,
        False,
    ]
    with pytest.raises(SettingError, match="yes or no"):
        switch.resolve("perhaps", subject)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, ()),
        ("", ()),
        ("3", (3,)),
        (3, (3,)),
        ("5, 1-3,2", (1, 2, 3, 5)),
        ([4, 2], (2, 4)),
        ("0–1", (0, 1)),
    ],
)
def test_channels(given: Any, wanted: tuple[int, ...], subject: Subject) -> None:
    assert parameters.Channels().resolve(given, subject) == wanted


@pytest.mark.parametrize("given", ["a", "3-1", "-1", "1,,x", [-2], -2, 2.5, "1-999999"])
def test_channels_that_mean_nothing_are_refused(given: Any, subject: Subject) -> None:
    with pytest.raises(HookVizError, match="channel numbers such as"):
        parameters.Channels().resolve(given, subject)


@pytest.mark.parametrize("image", ["cat.png", b"PNG", Path("cat.png")])
def test_one_more_image_needs_no_list_and_without_any_the_samples_may_be_used(
    image: Any, subject: Subject
) -> None:
    assert parameters.MoreImages().resolve(image, subject) == (image,)
    assert parameters.MoreImages().resolve([image, image], subject) == (image, image)
    assert parameters.MoreImages().resolve(None, subject) == ()
    every = tuple(str(sample.path) for sample in samples())
    assert parameters.MoreImages(samples=True).resolve(None, subject) == every
    assert parameters.MoreImages(samples=True).resolve((), subject) == ()


def test_layers_that_put_out_maps_and_channels(subject: Subject) -> None:
    maps = parameters.LayerChoice(kind="maps", default="last map")
    assert [layer.name for layer in maps.choices(subject.trace)] == ["conv1", "relu", "conv2"]
    assert maps.resolve(None, subject) == "conv2"
    with pytest.raises(SettingError, match="head"):
        maps.resolve("head", subject)
    assert parameters.ChannelChoice().resolve("12", subject) == 12
    with pytest.raises(SettingError, match="whole number from 0"):
        parameters.ChannelChoice().resolve(-1, subject)


def test_of_blocks_alone_one_is_the_default() -> None:
    class Block(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images * 2

    model = as_model(nn.Sequential(Block(), nn.Flatten(), nn.Linear(768, 5)))
    subject = Subject(model, prepare_input(model, random_input(0)), None)
    assert parameters.LayerChoice(kind="maps").resolve(None, subject) == "0"
    with pytest.raises(HookVizError, match="no conv layer"):
        parameters.LayerChoice().resolve(None, subject)


def test_a_parameter_matters_for_certain_choices_of_another() -> None:
    always = WholeNumber(name="top", label="Top", low=1, high=9, default=5)
    sometimes = replace(always, matters_for=("method", ("Score-CAM",)))
    if_any = replace(always, matters_for=("layer", ()))
    assert always.matters({})
    assert sometimes.matters({"method": "Score-CAM"})
    assert not sometimes.matters({"method": "Grad-CAM"})
    assert if_any.matters({"layer": "conv1"})
    assert not if_any.matters({"layer": None})


def test_what_a_parameter_matters_for_is_there_before_it() -> None:
    for lens in list_lenses():
        names: list[str] = []
        for parameter in lens.parameters:
            if parameter.matters_for is not None:
                name, choices = parameter.matters_for
                assert name in names, (lens.slug, parameter.name)
                other = lens.parameters[names.index(name)]
                if choices:
                    assert isinstance(other, OneOf)
                    assert set(choices) <= set(other.choices)
            names.append(parameter.name)


def test_a_length_in_pixels_is_a_share_of_the_shorter_side_where_nothing_is_chosen(
    tiny: Model,
) -> None:
    subject = Subject(tiny, prepare_input(tiny, random_input(0, 28)[..., :20]), None)
    length = parameters.PixelCount(name="window", label="Window", share=1 / 7)
    assert [length.resolve(value, subject) for value in (None, 0, "0", 5)] == [3, 3, 3, 5]
    assert parameters.PixelCount(name="step", label="Step", share=0.01).resolve(0, subject) == 1
    with pytest.raises(SettingError, match="window=-1 is not a whole number from 0"):
        length.resolve(-1, subject)
