"""What a page answers is what the library answers, in each language and theme."""

import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.layer_call import LayerCall, explain_cell
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explorer import client_files
from hookviz.explorer.answering import answer
from hookviz.explorer.origin import cell_sum
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.catalogs import signs
from hookviz.language.speaking import speaking
from hookviz.standalone.client_page import CLIENT
from hookviz.standalone.recording import call_facts, record_layers, step_halves
from hookviz.wording import number
from tests.explorer.asking import asked, decoded, floats, subject_of
from tests.networks import as_model, random_input, seeded
from tests.node import run_node
from tests.standalone.pages import LANGUAGES, THEMES, Asked, Recorded, recorded
from tests.token_networks import TOKEN_NETWORKS

SHARED = client_files.CLIENT / "shared.js"


def in_node(
    constants: dict[str, Any], expression: str, module: Path = CLIENT / "any_cell.js"
) -> Any:
    """The value of an expression with the module as `it`."""
    begins = "".join(f"const {name} = {json.dumps(each)};\n" for name, each in constants.items())
    return json.loads(
        run_node(
            f"{begins}globalThis.window = {{ hookvizWords: WORDS, hookvizPoint: POINT }};\n"
            f'const it = await import("{module.as_uri()}");\n'
            f"console.log(JSON.stringify({expression}));"
        )
    )


def in_javascript(
    call: LayerCall, places: list[tuple[int, int, int]], language: str
) -> list[dict[str, Any]]:
    """What the page says of some cells; values and steps as float16 has them."""
    from hookviz.language.catalogs import script_words  # noqa: PLC0415

    with speaking(language):
        facts = call_facts(call, "before")
    half = call.output.numpy().astype(np.float16).astype(float)
    after = [step.values.numpy().astype(np.float16).astype(float) for step in call.steps]
    constants = {
        "WORDS": dict(script_words(language)),
        "POINT": signs(language)[0],
        "CALL": facts,
        "INPUT": call.padded.flatten().tolist(),
        "WEIGHTS": call.kernel.flatten().tolist(),
        "PLACES": [[place, half[place], [each[place] for each in after]] for place in places],
    }
    numbers = "{ input: Float32Array.from(INPUT), weights: Float32Array.from(WEIGHTS) }"
    return list(
        in_node(
            constants,
            f"PLACES.map(([place, ...half]) => it.anyCell(CALL, {numbers}, place, ...half))",
        )
    )


NETWORKS = {
    "plain": lambda: nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()),
    "no bias, a norm and a swish": lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, bias=False), nn.BatchNorm2d(4), nn.SiLU()
    ),
    "groups, dilated": lambda: nn.Sequential(
        nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, (3, 2), dilation=2, groups=4, padding=(2, 1))
    ),
    "reflected": lambda: nn.Sequential(
        nn.Conv2d(3, 7, 5, padding=2, padding_mode="reflect"), nn.Sigmoid()
    ),
    "many inputs": lambda: nn.Sequential(nn.Conv2d(3, 12, 1), nn.Conv2d(12, 2, 3)),
}


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("kind", NETWORKS)
def test_any_sum_is_python_s(kind: str, language: str) -> None:
    module = seeded(NETWORKS[kind])
    layer = [name for name, part in module.named_modules() if isinstance(part, nn.Conv2d)][-1]
    call = record_layer_call(as_model(module), random_input(3), layer)
    channels, rows, columns = call.output.shape
    places = [(0, 0, 0), (channels - 1, rows - 1, columns - 1), (1, rows // 2, columns // 3)]
    found = in_javascript(call, places, language)
    for place, said in zip(places, found, strict=True):
        with speaking(language):
            expected = cell_sum(explain_cell(call, *place), "before", "RdBu_r")
        expected.pop("colours")
        assert (said.pop("hasKernel"), said.pop("canWalk")) == (False, False)
        assert plain(said) == approximately(plain(expected)), place


def test_any_sum_of_a_linear_layer_on_tokens_is_python_s() -> None:
    case = TOKEN_NETWORKS["timm's DeiT"]
    call = record_layer_call(case.model(), case.image(), "blocks.0.mlp.fc1")
    places = [(0, 0, 0), (31, 3, 5), (7, 2, 1)]
    for place, said in zip(places, in_javascript(call, places, "en"), strict=True):
        expected = cell_sum(explain_cell(call, *place), "before", "RdBu_r")
        expected.pop("colours")
        del said["hasKernel"], said["canWalk"]
        assert plain(said) == approximately(plain(expected)), place


def plain(facts: Any) -> Any:
    return json.loads(json.dumps(facts))


def approximately(facts: Any) -> Any:
    """The same facts, whose numbers may differ in the fifth digit."""
    if isinstance(facts, dict):
        return {name: approximately(each) for name, each in facts.items()}
    if isinstance(facts, list):
        return [approximately(each) for each in facts]
    return pytest.approx(facts, rel=1e-4) if isinstance(facts, float) else facts


def test_steps_keep_their_size_and_another_sum_is_named() -> None:
    call = record_layer_call(as_model(seeded(NETWORKS["plain"])), random_input(3), "0")
    (after,) = step_halves(call)
    assert 0 < after.error < 1e-3
    wrong = call.output.clone()
    wrong[0, 0, 0] += 1
    object.__setattr__(call, "output", wrong)
    (said,) = in_javascript(call, [(0, 0, 0)], "en")
    words = "".join(part[0] for part in said["sum"])
    assert words.endswith("NOT what the network computed")
    assert said["title"].startswith(f"Why {number(float(wrong[0, 0, 0]))} at")


def test_a_number_is_written_as_in_python() -> None:
    rng = np.random.default_rng(5)
    values = [
        *(rng.normal(size=300) * 10.0 ** rng.integers(-9, 9, 300)).tolist(),
        *(0.0, 1.125, 1.135, -1.145, 2.5, 0.125, 999.5, 9995.0, 123456.0, 99950.0, 999500.0, 1e-4),
        *(9.995e-4, 1e6, -4.1e-5, 12300.0, 0.001, 3.0, 1e300, 5e-324),
    ]
    for language, point in (("en", "."), ("de", ",")):
        given = {"WORDS": {}, "POINT": point, "VALUES": values}
        found = in_node(given, "VALUES.map((value) => it.written(value))", SHARED)
        expected = [number(value) for value in values]
        if language == "de":
            expected = [each.translate({44: 46, 46: 44}) for each in expected]
        assert found == expected, language
    odd = in_node(
        {"WORDS": {}, "POINT": "."}, "[NaN, Infinity, -Infinity].map((v) => it.written(v))", SHARED
    )
    assert odd == [number(each) for each in (math.nan, math.inf, -math.inf)]


KEPT, BESIDE = "stem.first.conv", "stem.first.norm"
FIRST, LAST, SUMS = "stem.first.conv", "stage3.second.conv", "stage2.first.conv"
_DIGITS = 1e-3  # of what was kept with four


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"))


@pytest.fixture(scope="module")
def page(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    layers = [FIRST, SUMS, LAST]
    return recorded(subject, layers, tmp_path_factory.mktemp("page"), sums=[SUMS])


WAYS = [(0, 0), (1, 1)]


def in_python(
    subject: Subject, question: str, layer: str | None, language: int, theme: int, **about: Any
) -> Mapping[str, Any]:
    looked = replace(subject, colours=THEMES[theme])
    with speaking(LANGUAGES[language]):
        facts = answer(looked, View(layer=layer), Question(question, about)).facts
    plain: dict[str, Any] = json.loads(json.dumps(facts))
    return plain


@pytest.mark.parametrize(("language", "theme"), WAYS)
def test_the_tiles_are_the_library_s(
    subject: Subject, page: Recorded, language: int, theme: int
) -> None:
    for layer in (FIRST, LAST):
        ((facts, data),) = page.answers([Asked("tiles", {}, layer, language, theme)])
        looked = replace(subject, colours=THEMES[theme])
        with speaking(LANGUAGES[language]):
            expected = answer(looked, View(layer=layer), Question("tiles"))
        for name in ("legend", "shown", "order", "orders", "limits", "strongest", "stats", "alt"):
            assert facts[name] == json.loads(json.dumps(expected.facts[name])), name
        for name in ("palette", "ticks", "geometry", "levels", "nan", "infinity"):
            assert facts[name] == json.loads(json.dumps(expected.facts[name])), name
        np.testing.assert_array_equal(decoded(facts["bar"]), decoded(expected.facts["bar"]))
        with Image.open(io.BytesIO(data)) as ours, Image.open(io.BytesIO(expected.data)) as theirs:
            assert (ours.mode, ours.size) == ("P", theirs.size)
            ours_rgba, theirs_rgba = ours.convert("RGBA"), theirs.convert("RGBA")
            levels = np.asarray(ours).astype(int), np.asarray(theirs).astype(int)
        apart = np.abs(levels[0] - levels[1])
        assert apart.max() <= 1  # where a value lies at the edge between two colours
        assert (apart > 0).mean() < 0.02
        same = apart == 0
        assert (np.asarray(ours_rgba)[same] == np.asarray(theirs_rgba)[same]).all()


@pytest.mark.parametrize(("language", "theme"), WAYS)
def test_a_channel_is_the_library_s(
    subject: Subject, page: Recorded, language: int, theme: int
) -> None:
    for layer, channel in ((FIRST, 0), (FIRST, 17), (LAST, 5)):
        ((facts, _),) = page.answers(
            [Asked("channel", {"channel": channel}, layer, language, theme)]
        )
        expected = in_python(subject, "channel", layer, language, theme, channel=channel)
        shape = facts["rows"], facts["columns"]
        values, exact = floats(facts["values"], *shape), floats(expected["values"], *shape)
        np.testing.assert_allclose(values, exact, rtol=2**-11, atol=1e-6)
        np.testing.assert_array_equal(decoded(facts["bar"]), decoded(expected["bar"]))
        for name in expected.keys() - {"values", "picture", "bar"}:
            assert facts[name] == expected[name], name


@pytest.mark.parametrize("language", [0, 1])
def test_the_sum_of_the_strongest_cell_is_the_library_s(
    subject: Subject, page: Recorded, language: int
) -> None:
    tiles = asked(subject, "tiles", View(layer=LAST))
    for channel in (0, 9):
        row, column = divmod(tiles["strongest"][channel], tiles["columns"])
        place = {"channel": channel, "row": row, "column": column}
        ((facts, _),) = page.answers([Asked("cell", place, LAST, language, 1)])
        expected = in_python(subject, "cell", LAST, language, 1, **place)
        assert facts["title"] == expected["title"]
        assert (facts["sum"], facts["steps"]) == (expected["sum"], expected["steps"])
        assert facts["rest"] == expected["rest"]
        assert (facts["upstream"], expected["upstream"]) == (None, "stage3.first.conv")
        assert facts["colours"] == THEMES[1].diverging
        assert facts["rows"] == _approximately(expected["rows"])
        assert not facts["hasKernel"]
        assert not facts["canWalk"]


@pytest.mark.parametrize("language", [0, 1])
def test_any_sum_of_a_layer_with_sums_is_the_library_s(
    subject: Subject, page: Recorded, language: int
) -> None:
    tiles = asked(subject, "tiles", View(layer=SUMS))
    last = {"row": tiles["rows"] - 1, "column": 0}
    for place in ({"channel": 3, "row": 2, "column": 5}, {"channel": 0, **last}):
        ((facts, _),) = page.answers([Asked("cell", place, SUMS, language)])
        expected = in_python(subject, "cell", SUMS, language, 0, **place)
        expected = {**expected, "hasKernel": False, "canWalk": False}
        assert facts == _approximately(expected)


def _approximately(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {name: _approximately(each) for name, each in facts.items()}
    if isinstance(facts, list):
        return [_approximately(each) for each in facts]
    return pytest.approx(facts, rel=_DIGITS) if isinstance(facts, float) else facts


def test_only_what_a_page_has_is_offered_and_how_to_have_all(
    subject: Subject, page: Recorded
) -> None:
    tiles = asked(subject, "tiles", View(layer=LAST))
    row, column = divmod(tiles["strongest"][1], tiles["columns"])
    other = {"channel": 1, "row": (row + 1) % tiles["rows"], "column": column}
    facts = page.facts("cell", LAST, **other)
    assert f"row {row}, column {column}" in facts["info"]
    assert f"--sums {LAST}" in facts["info"]
    assert page.facts("tiles", LAST)["picksStrongest"]
    assert not page.facts("tiles", SUMS)["picksStrongest"]
    layers = page.facts("layers", FIRST)
    assert [len(layers[name]) for name in ("scales", "colourMaps")] == [1, 1]
    assert (layers["patches"], layers["isConv"], layers["isUsual"]) == (None, False, False)
    assert page.facts("layers", "gone")["layer"] == FIRST
    assert "no layer gone" in page.facts("layers", "gone")["warning"]
    assert page.facts("layers", None)["warning"] == ""
    assert "hookviz run" in page.facts("walk", FIRST, channel=0, row=0, column=0)["error"]
    assert page.facts("excites", FIRST, channel=0) == {"known": False, "patches": [], "error": ""}


@pytest.mark.parametrize("language", [0, 1])
def test_what_is_around_is_the_library_s(subject: Subject, page: Recorded, language: int) -> None:
    shown = [each for each in subject.trace.convs if each.name in (FIRST, SUMS, LAST)]
    looked = replace(subject, offered=shown)
    (head, field, tree, photograph, layers) = page.answers(
        [
            Asked(name, {}, LAST, language)
            for name in ("head", "field", "tree", "photograph", "layers")
        ]
    )
    assert head[0] == in_python(looked, "head", None, language, 0)
    assert tree[0]["parts"] == in_python(looked, "tree", None, language, 0)["parts"]
    assert photograph[0] == in_python(looked, "photograph", None, language, 0)
    expected = in_python(looked, "field", LAST, language, 0)
    assert field[0] == _approximately(expected)
    said = in_python(looked, "layers", LAST, language, 0)
    for name in ("options", "layer", "step", "steps", "sorts", "tops", "shape", "listed"):
        assert layers[0][name] == said[name], name
    with Image.open(io.BytesIO(head[1])) as seen:
        assert seen.size[0] > 0
    with Image.open(io.BytesIO(photograph[1])) as small:
        assert small.format == "JPEG"


def test_a_sum_leads_to_the_layer_before_where_the_page_has_it(
    subject: Subject, tmp_path: Path
) -> None:
    before = "stage3.first.conv"
    page = recorded(subject, [before, LAST], tmp_path)
    tiles = asked(subject, "tiles", View(layer=LAST))
    row, column = divmod(tiles["strongest"][0], tiles["columns"])
    assert page.facts("cell", LAST, channel=0, row=row, column=column)["upstream"] == before


def test_what_excites_a_channel_is_there_with_an_atlas(tmp_path: Path) -> None:
    atlas = hookviz.load_atlas("assets/atlases/shapesnet.atlas")
    words = "among images"
    subject = subject_of(hookviz.load_model("shapesnet"), atlas=atlas, atlas_words=words)
    page = recorded(subject, [LAST], tmp_path)
    facts = page.facts("excites", LAST, channel=3)
    expected = in_python(subject, "excites", LAST, 0, 0, channel=3)
    assert [each["picture"] for each in facts["patches"]] == [
        each["picture"] for each in expected["patches"]
    ]
    assert [each["title"] for each in facts["patches"]] == [
        each["title"] for each in expected["patches"]
    ]
    assert all(each["leads"] is None for each in facts["patches"])
    assert facts["among"] == words
    layers = page.facts("layers", LAST)
    assert (layers["isConv"], layers["isUsual"], layers["patches"]) == (True, True, None)


class Odd(nn.Module):
    """A channel that is not a number, one infinite, one dead, and one of large values."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.pool = nn.MaxPool2d(2)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        scores: Tensor = self.pool(maps).mean((2, 3))
        return scores


def odd_page(tmp_path: Path, layer: str = "conv") -> tuple[Subject, Recorded]:
    network = seeded(Odd)
    with torch.no_grad():
        network.conv.weight[0] = torch.nan
        network.conv.weight[1] = torch.inf
        network.conv.weight[2] = 0
        network.conv.weight[3] *= 1e7
    subject = subject_of(hookviz.wrap(network, hookviz.Preprocess(resize=16, crop=16)))
    return subject, recorded(subject, [layer], tmp_path)


def test_what_is_no_number_has_its_own_colours(tmp_path: Path) -> None:
    subject, page = odd_page(tmp_path)
    ((facts, data),) = page.answers([Asked("tiles", {}, "conv")])
    expected = answer(subject, View(), Question("tiles"))
    with Image.open(io.BytesIO(data)) as ours, Image.open(io.BytesIO(expected.data)) as theirs:
        found, wanted = np.asarray(ours).astype(int), np.asarray(theirs).astype(int)
    special = wanted >= facts["nan"]
    assert special.any()
    np.testing.assert_array_equal(found[special], wanted[special])
    assert page.facts("channel", "conv", channel=0)["noFinite"]
    assert page.facts("channel", "conv", channel=2)["dead"]
    cell = page.facts("cell", "conv", channel=0, row=0, column=0)
    assert cell["title"].startswith("Why NaN")
    values = floats(page.facts("channel", "conv", channel=3)["values"], 14, 14)
    assert np.abs(values).max() > 65504


def test_a_layer_that_is_no_sum_says_what_it_does(tmp_path: Path) -> None:
    subject, page = odd_page(tmp_path, "pool")
    place = {"channel": 1, "row": 0, "column": 3}
    expected = in_python(subject, "cell", "pool", 0, 0, **place)
    assert page.facts("cell", "pool", **place)["info"] == expected["info"]


def test_progress_is_told_after_each_layer(subject: Subject) -> None:
    shown = [each for each in subject.trace.convs if each.name in (FIRST, LAST)]
    told: list[float] = []
    looked = replace(subject, offered=shown)
    names = [each.name for each in record_layers(looked, shown, progress=told.append)]
    assert (names, told) == ([FIRST, LAST], [0.5, 1.0])


@pytest.fixture(scope="module")
def mapped_subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"), "star")


@pytest.fixture(scope="module")
def mapped_page(mapped_subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(mapped_subject, [KEPT], tmp_path_factory.mktemp("page"), has_map=True)


def parts(network: Any) -> Iterator[Any]:
    yield network
    for each in network.get("parts", ()):
        yield from parts(each)


@pytest.mark.parametrize(("language", "theme"), [(0, 0), (1, 1)])
def test_it_is_the_library_s_map(
    mapped_subject: Subject, mapped_page: Recorded, language: int, theme: int
) -> None:
    ((facts, data),) = mapped_page.answers([Asked("whole", {}, None, language, theme)])
    with speaking(LANGUAGES[language]):
        expected = answer(replace(mapped_subject, colours=THEMES[theme]), View(), Question("whole"))
    for part in parts(facts["network"]):
        part.pop("isKept", None)
        part.pop("sees", None)
    assert facts == json.loads(json.dumps(expected.facts))
    with Image.open(io.BytesIO(data)) as ours, Image.open(io.BytesIO(expected.data)) as theirs:
        pictures = [np.asarray(each.convert("RGBA")) for each in (ours, theirs)]
    np.testing.assert_array_equal(pictures[0], pictures[1])


def test_what_is_not_kept_says_so_and_what_its_middle_sees(
    mapped_subject: Subject, mapped_page: Recorded
) -> None:
    by_name = {each["name"]: each for each in parts(mapped_page.facts("whole")["network"])}
    assert "isKept" not in by_name[KEPT]
    assert not by_name[BESIDE]["isKept"]
    network, image = (
        mapped_subject.model.network,
        mapped_subject.model_input.tensor.clone().requires_grad_(),
    )
    _, rows, columns = by_name[BESIDE]["maps"]
    stem = dict(network.named_modules())
    stem[BESIDE](stem[KEPT](image))[0, 0, rows // 2, columns // 2].backward()
    assert image.grad is not None
    down, across = (image.grad.abs().sum((0, 1, side)).nonzero() for side in (3, 2))
    crop, shown = mapped_subject.model_input.crop, mapped_subject.image
    assert crop is not None
    expected = []
    for start, end, cells, whole, seen in (
        (crop.top, crop.bottom, crop.height, shown.height, down),
        (crop.left, crop.right, crop.width, shown.width, across),
    ):
        ends = torch.tensor([float(seen.min()), float(seen.max()) + 1])
        expected.append((start + ends * (end - start) / cells) / whole)
    (top, bottom), (left, right) = expected
    assert by_name[BESIDE]["sees"] == pytest.approx(
        [float(edge) for edge in (top, left, bottom, right)], abs=2e-4
    )


def test_a_map_that_is_too_large_is_refused(tmp_path: Path) -> None:
    model = hookviz.load_model("shapesnet")
    seen = hookviz.capture(model, "assets/samples/star.jpg", KEPT)
    with pytest.raises(hookviz.HookVizError, match=r"map of the whole network takes .* alone"):
        hookviz.save_page(seen, tmp_path / "star.html", whole_network=True, most_bytes=9000)
