import subprocess
import sys
from typing import Any

import pytest
import torch

import hookviz
from hookviz import edits
from hookviz.errors import SettingError
from tests.library_alone import ROOT
from tests.networks import Tiny, random_input, seeded


def test_without_a_channel_the_score_is_captums() -> None:
    import captum.attr  # noqa: PLC0415

    network, image = seeded(Tiny).eval(), random_input(0)
    masks = torch.arange(4).reshape(1, 4, 1, 1)  # a feature for each channel
    theirs = captum.attr.LayerFeatureAblation(network, network.conv1).attribute(
        image, target=2, layer_mask=masks
    )
    with torch.no_grad():
        score = network(image)[0, 2]
        for channel in range(4):
            with hookviz.edit(network, {"conv1": edits.zero(channels=[channel])}):
                drop = score - network(image)[0, 2]
            torch.testing.assert_close(drop, theirs[0, channel, 0, 0])


_TORCHLENS = """
import warnings
import torch, torchlens, hookviz
from tests.networks import Tiny, random_input, seeded

network, image = seeded(Tiny).eval(), random_input(0)
other = random_input(1).expand(1, 3, 16, 16)
vector, values = torch.arange(4.0).reshape(4, 1, 1), torch.ones(1, 4, 16, 16)
pairs = [
    (torchlens.zero_ablate(), hookviz.edits.zero),
    (torchlens.scale(-2.0), hookviz.edits.scale(-2)),
    (torchlens.add(vector), hookviz.edits.add(vector.flatten())),
    (torchlens.replace_with(values), hookviz.edits.replace(values)),
]
warnings.simplefilter("ignore")  # a trace says that it is changed in place
for theirs, ours in pairs:
    ready = torchlens.options.CaptureOptions(intervention_ready=True)
    trace = torchlens.trace(network, image, capture=ready)
    trace.do(torchlens.module("conv1"), theirs)
    expected = trace[trace.output_layers[0]].out
    with torch.no_grad(), hookviz.edit(network, {"conv1": ours}):
        found = network(image)
    torch.testing.assert_close(found, expected.detach())
    assert not torch.allclose(found, network(image))
"""


@pytest.mark.by_day
def test_edits_equal_the_interventions_of_torchlens() -> None:
    """In a process of its own: importing torchlens changes torch."""
    subprocess.run([sys.executable, "-c", _TORCHLENS], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: edits.scale("twice"), "factor='twice' is no numbers. A number is"),
        (lambda: edits.zero(channels=[-1]), r"channels=\[-1\] are no numbers of channels"),
        (lambda: edits.keep([True]), "are no numbers of channels"),
        (lambda: edits.zero(cells="a"), "cells='a' are no places of cells"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_edit_is_refused(make: Any, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        make()


@pytest.mark.parametrize("change", [None, 3, edits.scale])
def test_neither_a_function_nor_an_edit_is_refused(change: Any) -> None:
    with (
        pytest.raises(SettingError, match="is no edit"),
        hookviz.edit(seeded(Tiny), "conv1", change),
    ):
        raise AssertionError("it went on")
