"""Where the explorer begins: only what was measured of the network and image on the screen."""

from dataclasses import replace

import pytest

import hookviz
from hookviz.explaining.patching.channel_mask import ChannelMask
from hookviz.images.reading import decode_small_file
from hookviz.images.samples import samples
from hookviz.models import catalog
from hookviz.ui.explorer.opening import opening
from hookviz.ui.explorer.scene import ExplorerScene
from hookviz.ui.state import ModelChoice, Shown


@pytest.fixture(scope="module")
def scene() -> ExplorerScene:
    file = samples()[0].path
    model = hookviz.load_model("squeezenet")
    choice = ModelChoice(catalog.find_model("squeezenet"), "pretrained")
    shown = Shown(decode_small_file(file.read_bytes(), file.name), "a cat", file)
    return ExplorerScene(shown, choice, hookviz.prepare(model, file), None, False)


def test_the_cat_opens_on_its_eyes_and_nothing_that_was_not_measured_opens_on_a_channel(
    scene: ExplorerScene,
) -> None:
    assert opening(scene) == {"layer": "features.11.squeeze", "channel": "21", "part": "eyes"}
    choice, shown = scene.choice, scene.shown
    drawn = next(sample.path for sample in samples() if sample.kind == "drawn")
    for other in (
        replace(scene, choice=replace(choice, weights="random")),
        replace(scene, choice=replace(choice, mask=ChannelMask("features.0", (1,)))),
        replace(scene, choice=replace(choice, spec=catalog.find_model("shapesnet"))),
        replace(scene, shown=replace(shown, file=None)),
        replace(scene, shown=replace(shown, file=drawn)),
        replace(scene, size=320),
        replace(scene, whole=True),
    ):
        assert opening(other) is None
