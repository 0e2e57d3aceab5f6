"""The photograph against Pillow's resizing, the cells' fields, and the classes of the capture."""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.models.vision_transformer import VisionTransformer

import hookviz
from hookviz.drawing.overlay import on_picture
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField, receptive_fields
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject, make_subject
from hookviz.explorer.view import View
from hookviz.types import Model, Preprocess
from tests.explorer.asking import ask, asked, subject_of, words
from tests.networks import Tiny, as_model, seeded
from tests.token_networks import TOKEN_NETWORKS


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("squeezenet1_1", weights="random"), "cat")


def test_it_is_the_whole_photograph(subject: Subject) -> None:
    found = ask(subject, "photograph")
    picture = Image.open(io.BytesIO(found.data))
    assert picture.format == "JPEG"
    assert picture.size == (found.facts["width"], found.facts["height"])
    assert max(picture.size) == 480
    expected = Image.fromarray(subject.image.pixels).resize(picture.size, Image.Resampling.BILINEAR)
    off = np.asarray(picture).astype(int) - np.asarray(expected)
    assert np.abs(off).mean() < 3
    assert found.facts["alt"] == "a yellow star"
    assert ask(subject, "photograph").data is found.data  # it is made once
    crop, image = found.facts["crop"], subject.image  # which is what the network saw
    assert found.facts["missing"] == ""
    top, bottom = (round(crop[side] * image.height) for side in ("top", "bottom"))
    left, right = (round(crop[side] * image.width) for side in ("left", "right"))
    part = Image.fromarray(image.pixels[max(top, 0) : bottom, max(left, 0) : right])
    assert subject.model_input.picture is not None
    shown = np.asarray(part.resize((224, 224), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(shown - subject.model_input.picture).mean() < 6
    assert crop["bottom"] - crop["top"] < 1


@pytest.mark.parametrize(("layer", "frame", "level"), [("0", 0, 0), ("0", 4, 160), ("2", 1, 160)])
def test_of_an_animation_it_is_the_frame_that_is_shown(layer: str, frame: int, level: int) -> None:
    levels = [0, 40, 80, 120, 160, 200]
    stages = (nn.Conv3d(3, 2, 3, padding=1), nn.AvgPool3d((3, 1, 1)), nn.Conv3d(2, 2, 1))
    model = hookviz.wrap(nn.Sequential(*stages), Preprocess(20, 16, frames=6))
    pictures = [Image.new("RGB", (30, 24), (each,) * 3) for each in levels]
    file = io.BytesIO()
    pictures[0].save(file, "PNG", save_all=True, append_images=pictures[1:])
    clip = make_subject(model, file.getvalue())
    view = View(layer=layer, frame=frame)
    assert asked(clip, "layers", view)["moves"]
    shown = Image.open(io.BytesIO(ask(clip, "photograph", view).data))
    seen = int(np.asarray(shown)[12, 12, 0])
    # of two frames the second stands for the last three of six, in whose middle is the fifth
    assert abs(seen - level) <= 2
    assert not asked(make_subject(model, "assets/samples/cat.jpg"), "layers", view)["moves"]


SIDE = 480


def field_of(subject: Subject, step: str) -> ReceptiveField:
    return receptive_fields(subject.model, tuple(subject.model_input.tensor.shape[1:]))[step]


def box_on_picture(subject: Subject, step: str, cell: tuple[int, int]) -> tuple[int, ...]:
    crop = subject.model_input.crop
    assert crop is not None
    return on_picture(field_of(subject, step).box(*cell), crop, subject.image, (SIDE, SIDE))


@pytest.mark.parametrize("layer", ["features.0", "features.6.squeeze", "classifier.1"])
def test_a_cells_frame_is_where_it_was_drawn(subject: Subject, layer: str) -> None:
    facts = asked(subject, "field", View(layer=layer))
    rows, columns = field_of(subject, layer).cells
    assert (len(facts["rows"]), len(facts["columns"]), facts["boxes"]) == (rows, columns, None)
    for row, column in ((0, 0), (rows // 2, columns // 3), (rows - 1, columns - 1)):
        top, bottom = facts["rows"][row]
        left, right = facts["columns"][column]
        expected = box_on_picture(subject, layer, (row, column))
        np.testing.assert_allclose(
            np.array([top, left, bottom, right]) * SIDE, expected, atol=0.5000001
        )


def test_it_says_what_the_layer_is_and_what_is_framed(subject: Subject) -> None:
    facts = asked(subject, "field")
    assert words(facts["facts"]).startswith(
        "conv layer 1 of 26 · 3×3 convolution · stride 2 · 3 → 64"
    )
    assert words(facts["says"]) == "framed: what the cell sees, 3×3 px"
    assert facts["size"] == [3, 3]
    assert any(sentence for _, sentence in facts["says"])
    block = asked(subject, "field", View(layer="features.3"))
    names = [each.name for each in hookviz.list_layers(subject.model, kind="maps")]
    number = names.index("features.3") + 1
    assert words(block["facts"]).startswith(f"layer {number} of {len(names)} · Fire · 64 → 128")
    step = asked(subject, "field", View(after="MaxPool2d"))  # which is framed
    assert step["size"] == [7, 7]
    assert len(step["rows"]) == field_of(subject, "features.2").cells[0]
    assert words(step["facts"]).startswith("conv layer 1 of 26")
    assert words(step["facts"]).endswith("sees 3×3 px")  # the layer itself
    convnext = subject_of(hookviz.load_model("convnext_tiny", "random"))
    said = words(asked(convnext, "field", View(layer="features.5.3.block.3"))["facts"])
    assert "384 → 1,536 channels of 14×14 · channels last" in said


def turned(maps: Tensor) -> Tensor:
    """Maps of which rows and columns change places in a half."""
    return torch.cat([maps[..., :8], maps[..., 8:].transpose(2, 3).reshape(1, 2, 16, 8)], 3)


def leaning(maps: Tensor) -> Tensor:
    """Maps whose columns go down, the further to the right the further."""
    columns: Any = maps.split(1, 3)  # type: ignore[no-untyped-call]
    return torch.cat([each.roll(at, 2) for at, each in enumerate(columns)], 3)


class Mixes(nn.Module):
    """A layer behind a convolution's maps of which something is made."""

    def __init__(self, mix: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv, self.mix, self.mixed = nn.Conv2d(3, 2, 3, padding=1), mix, nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        result: Tensor = self.mixed(self.mix(self.conv(images)))
        return result


@pytest.mark.parametrize("mix", [turned, leaning])
def test_where_a_cells_place_is_not_its_row_and_column_each_has_a_box(
    mix: Callable[[Tensor], Tensor],
) -> None:
    subject = subject_of(as_model(seeded(lambda: Mixes(mix)).eval()))
    facts = asked(subject, "field", View(layer="mixed"))
    assert facts["rows"] is None
    assert facts["boxes"] is not None
    assert facts["boxes"][5][5][:2] != facts["boxes"][5][0][:2]
    assert mix is leaning or facts["columns"] is None
    crop = subject.model_input.crop
    assert crop is not None
    scale = (crop.bottom - crop.top) / crop.height
    size = np.array([subject.image.height, subject.image.width] * 2)
    for row in range(16):
        for column in range(16):
            expected = np.array(field_of(subject, "mixed").box(row, column)) * scale
            expected += np.array([crop.top, crop.left] * 2)
            np.testing.assert_allclose(facts["boxes"][row][column], expected / size, rtol=1e-9)


def test_what_is_not_known_is_none(subject: Subject) -> None:
    unknown = replace(subject, model_input=replace(subject.model_input, crop=None))
    facts = asked(unknown, "field")
    assert facts["rows"] is facts["columns"] is facts["boxes"] is None
    assert facts["says"] == []
    assert facts["size"] == [3, 3]
    facts = asked(unknown, "photograph")
    assert facts["crop"] is None
    assert facts["missing"] == "Where this lies on the image is not known."


def test_what_sees_all_of_any_image_has_no_size() -> None:
    pooled = seeded(lambda: Mixes(lambda maps: maps * maps.mean((2, 3), keepdim=True)))
    facts = asked(subject_of(as_model(pooled.eval())), "field", View(layer="mixed"))
    assert facts["size"] is None
    assert words(facts["says"]) == "framed: what the cell sees, all of the image"
    assert facts["rows"][3] == pytest.approx([0, 1])


def test_tokens_are_told_as_patches_and_what_stands_before_them() -> None:
    network = seeded(lambda: VisionTransformer(32, 8, 1, 2, 24, 48, num_classes=5))
    subject = subject_of(hookviz.wrap(network, Preprocess(32, 32)))
    said = words(asked(subject, "field", View(layer="encoder.dropout"))["facts"])
    assert "24 channels of 4×4 patches and a class token · sees 8×8 px" in said
    behind = words(asked(subject, "field", View(layer="encoder.ln"))["facts"])
    assert "attention mixes all patches: sees all of the image" in behind
    framed = words(asked(subject, "field", View(layer="encoder.ln"))["says"])
    assert framed.endswith("sees, all of the image, for attention mixes all patches")


def test_windows_of_attention_are_told_as_the_most_that_is_seen() -> None:
    case = TOKEN_NETWORKS["timm's Swin"]
    subject = subject_of(model := case.model())
    given = replace(subject.model_input, tensor=case.image())
    subject = replace(subject, model=model, model_input=given)
    facts = asked(subject, "field", View(layer=case.layers[1]))
    assert "sees at most 8×8 px, by attention in windows" in words(facts["facts"])
    assert words(facts["says"]).endswith("sees, at most 8×8 px, by attention in windows")


def test_classes_are_the_capture_s_with_their_shares(model: Model) -> None:
    subject = subject_of(model)
    facts, picture = answer(subject, View(), Question("head"))
    cap = hookviz.capture(subject.model, subject.image)
    expected = cap.predictions(5)
    assert [each["name"] for each in facts["classes"]] == [name for name, _ in expected]
    shares = [each["share"] for each in facts["classes"]]
    assert shares == pytest.approx([chance for _, chance in expected], rel=1e-3)
    assert facts["classes"][0]["says"].endswith("%")
    assert facts["note"] == ""
    assert picture.startswith(b"\x89PNG")


def test_random_weights_and_a_network_without_classes_are_said() -> None:
    random = subject_of(hookviz.load_model("shapesnet", weights="random"), "star")
    assert "random" in asked(random, "head", View())["note"]
    rows = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2))
    facts = asked(subject_of(as_model(rows), "star"), "head", View())
    assert (facts["classes"], facts["note"]) == ([], "This network puts out no class scores.")
    open_ = asked(subject_of(hookviz.wrap(seeded(Tiny)), "star"), "head", View())
    assert "Nobody said" in open_["note"]
    assert all("%" not in each["says"] and each["share"] == 0 for each in open_["classes"])
    trained = as_model(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout(), nn.Flatten(2)).train())
    note = asked(subject_of(trained, "star"), "head", View())["note"]
    assert "no class scores. It is in training mode" in note
    vector = hookviz.wrap(seeded(Tiny), output="embedding")
    facts = asked(subject_of(vector, "star"), "head", View())
    assert facts["classes"] == []
    assert "an embedding of 5 numbers" in facts["note"]
