from typing import Any

import numpy as np
import pytest

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.drawing.panels import ImagePanel
from hookviz.lenses.contract.lens import LensResult
from hookviz.lenses.maximize import Weights
from hookviz.types import Model
from tests.codegen.script_cases import (
    CONVNEXT,
    FEW,
    LEVELS,
    NETWORKS,
    RESNET,
    SHAPESNET,
    SQUEEZENET,
    ScriptCase,
)
from tests.pictures import picture

SCRIPTS = (
    ScriptCase(FEW, NETWORKS, 1e-3, LEVELS),
    ScriptCase(
        FEW | {"of": "a class", "target": 2, "aim": "both", "beside_random": True},
        SHAPESNET,
        1e-3,
        LEVELS,
    ),
    ScriptCase(
        FEW | {"of": "classes with weights", "weights": "0, 2:-0.5", "space": "MACO"},
        SQUEEZENET,
        *(1e-3, LEVELS),
    ),
    ScriptCase(
        FEW
        | {"of": "channels side by side", "layer": "stage2.second.conv", "channels": "1, 3-5"}
        | {"penalty": "total variation", "aim": "what silences it", "steady": False},
        SHAPESNET,
        *(1e-3, LEVELS),
    ),
    ScriptCase(
        FEW
        | {"of": "channels with weights", "layer": "layer2.0.conv1", "weights": "12, 80:-1"}
        | {"row": 2, "column": 3, "pictures": 3, "seed": 7, "penalty": "L2", "strength": 2.0},
        RESNET,
        *(1e-3, LEVELS),
    ),
    ScriptCase(
        FEW | {"layer": "head", "row": 0, "column": 0, "space": "MACO", "pictures": 2},
        SHAPESNET,
        *(1e-3, LEVELS),
    ),
    ScriptCase(FEW | {"layer": "features.1.0.block.3", "channels": "3"}, CONVNEXT, 1e-3, LEVELS),
)

NOT_IN_SCRIPT = (
    "random_pictures",
    "random_values",
    "random_history",
    "random_noise",
)  # of other weights

SHORT: dict[str, Any] = {"steps": 6, "side": 32}


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        (None, ()),
        ("", ()),
        ("12", ((12, 1.0),)),
        ("80:-1, 12", ((12, 1.0), (80, -1.0))),
        (" 3 : 0.25 ", ((3, 0.25),)),
        ({5: 2, 1: -0.5}, ((1, -0.5), (5, 2.0))),
        (((1, -0.5), (5, 2.0)), ((1, -0.5), (5, 2.0))),
    ],
)
def test_weights(given: Any, weights: tuple[tuple[int, float], ...]) -> None:
    subject: Any = object()  # whether there are such channels is for the lens
    assert Weights().resolve(given, subject) == weights


@pytest.mark.parametrize("given", ["a", "1:", "1:x", "-1", "1,1", "1;2", "1:1e9", "9" * 50, "1,,"])
def test_what_means_nothing_is_refused(given: str) -> None:
    subject: Any = object()
    with pytest.raises(hookviz.SettingError, match="weights such as"):
        Weights().resolve(given, subject)


def maximize(model: Model, **chosen: Any) -> LensResult:
    return hookviz.run_lens("maximize", model, picture(), **(SHORT | chosen))


def titles(result: LensResult) -> list[str]:
    return [panel.title for panel in result.panels if isinstance(panel, ImagePanel)]


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ({"layer": "conv2", "channel": 3}, ["Channel 3"]),
        (
            {"layer": "conv2", "channel": 3, "row": 0, "column": 2},
            ["Channel 3, row 0, column 2"],
        ),
        ({"of": "channels side by side", "layer": "conv1", "channels": "0, 2-3"}, None),
        ({"of": "channels side by side", "layer": "conv1"}, None),
        ({"of": "a class", "target": 4}, ["The score of class 4"]),
        ({"of": "channels with weights", "layer": "conv2", "weights": {0: 1, 2: -0.5}}, None),
        ({"of": "classes with weights", "weights": "1, 2:-1"}, ["The score of class 1 − class 2"]),
        ({"aim": "what silences it", "layer": "conv2"}, ["What silences channel 0"]),
        (
            {"aim": "both", "layer": "conv2"},
            ["What excites channel 0", "What silences channel 0"],
        ),
        ({"layer": "conv2", "pictures": 3, "diversity": 1.0}, ["Channel 0"] * 3),
        ({"layer": "conv2", "space": "MACO", "penalty": "L2", "steady": False}, ["Channel 0"]),
    ],
)
def test_every_way(chosen: dict[str, Any], shown: list[str] | None, tiny: Model) -> None:
    result = maximize(tiny, **chosen)
    many = {"0, 2-3": 3}.get(chosen.get("channels", ""), 4 if shown is None else len(shown or ()))
    if "weights" in chosen:
        many = 1
    assert shown is None or titles(result) == shown
    assert result.values["pictures"].shape == (many, 32, 32, 3)
    assert result.values["history"].shape == (6, many)
    rising = result.values["values"] > result.values["noise"]
    expected = [not title.startswith("What silences") for title in titles(result)]
    assert rising.tolist() == expected


def test_values_are_those_of_the_library(tiny: Model) -> None:
    result = maximize(tiny, layer="conv2", channel=2, seed=3)
    alone = hookviz.maximize_activation(
        tiny,
        hookviz.Objective.of_channel("conv2", 2),
        steps=6,
        method=hookviz.MaximizationConfig(size=32, seed=3),
    )
    np.testing.assert_array_equal(result.values["pictures"][0], alone.pictures[0])
    assert result.values["values"].tolist() == list(alone.values)


def test_it_grows_and_goes_on_where_it_was_stopped(tiny: Model) -> None:
    whole = maximize(tiny, layer="conv2", steps=12)
    session = Budget(10_000_000).cache(10_000_000)
    seen: list[LensResult] = []
    steps = 0

    class Stopped(BaseException):
        pass

    def stop(_share: float) -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise Stopped

    options: dict[str, Any] = {"layer": "conv2", "steps": 12, "cache": session}
    with pytest.raises(Stopped):
        maximize(tiny, **options, progress=stop, partial=seen.append)
    assert titles(seen[0]) == titles(whole)
    assert [type(panel) for panel in seen[0].panels] == [type(panel) for panel in whole.panels]
    shares: list[float] = []
    resumed = maximize(tiny, **options, progress=shares.append)
    assert shares[0] == pytest.approx(6 / 12)
    np.testing.assert_array_equal(resumed.values["pictures"], whole.values["pictures"])
    more = maximize(tiny, **(options | {"steps": 20}))
    anew = maximize(tiny, layer="conv2", steps=20)
    np.testing.assert_array_equal(more.values["pictures"], anew.values["pictures"])
    fewer = maximize(tiny, **(options | {"steps": 12}))
    np.testing.assert_array_equal(fewer.values["pictures"], whole.values["pictures"])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"of": "channels with weights", "layer": "conv2"}, "write the weights"),
        ({"of": "classes with weights", "weights": "1:0"}, "counts 0"),
        ({"of": "channels side by side", "layer": "conv1", "channels": "0-4"}, "no channel 4"),
    ],
)
def test_mistakes_are_named(chosen: dict[str, Any], message: str, tiny: Model) -> None:
    with pytest.raises(hookviz.HookVizError, match=message):
        maximize(tiny, **chosen)


def test_too_many_at_once_are_refused() -> None:
    model = hookviz.load_model("shapesnet")
    with pytest.raises(hookviz.SettingError, match="36 are made at most"):
        hookviz.run_lens(
            *("maximize", model, picture()),
            of="channels side by side",
            layer="stage3.second.conv",
            channels="0-60",
        )


def test_random_weights_beside_it(tiny: Model) -> None:
    seen: list[LensResult] = []
    chosen: dict[str, Any] = {"layer": "conv2", "aim": "both", "beside_random": True}
    result = maximize(tiny, **chosen, partial=seen.append)
    random = "With random weights"
    assert titles(result) == ["What excites channel 0", random, "What silences channel 0", random]
    assert titles(seen[-1]) == titles(result)
    alone = maximize(tiny, layer="conv2", aim="both")
    np.testing.assert_array_equal(result.values["pictures"], alone.values["pictures"])
    assert not np.array_equal(result.values["random_pictures"], alone.values["pictures"])
    assert "never trained" in "".join(getattr(panel, "text", "") for panel in result.panels)
