"""The sum of any cell, computed in JavaScript, is Python's: its numbers and its sentences."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from hookviz.explaining.layers.layer_call import LayerCall, explain_cell
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explorer import client_files
from hookviz.explorer.origin import cell_sum
from hookviz.language.catalogs import signs
from hookviz.language.speaking import speaking
from hookviz.standalone.any_cell import call_facts, followed
from hookviz.standalone.client_page import CLIENT
from hookviz.wording import number
from tests.networks import as_model, random_input, seeded
from tests.node import run_node
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
    (after,) = followed(call)
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
