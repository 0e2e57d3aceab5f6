from dataclasses import replace
from pathlib import Path

import pytest

import hookviz
from hookviz.explaining.patching.channel_mask import ChannelMask
from hookviz.explorer.client_files import sheet
from hookviz.images.reading import decode_small_file
from hookviz.images.samples import samples
from hookviz.models import catalog
from hookviz.ui.components import files
from hookviz.ui.components.files import script
from hookviz.ui.explorer.mounting import opening
from hookviz.ui.explorer.scene import ExplorerScene
from hookviz.ui.state import ImageChoice, ModelChoice


def test_the_client_is_one_script_and_one_sheet_that_know_nothing_of_the_page_around_them() -> None:
    """So that it can stand in a notebook and in a file."""
    text = sheet(Path(files.__file__).parent / "explorer.css")
    assert "@import" not in text
    assert ".layer-row" in text
    assert ".stage" in text
    client = script("explorer.js")
    assert client.count("export default") == 1
    for part in client.split("\nconst client_")[1:]:
        module = part.split("\nconst components_")[0]
        for word in ("stMain", "setTriggerValue", "fetch(", "st-key-", "streamlit"):
            assert word not in module, module[:40]


@pytest.fixture(scope="module")
def scene() -> ExplorerScene:
    file = samples()[0].path
    model = hookviz.load_model("squeezenet")
    choice = ModelChoice(catalog.find_model("squeezenet"), "pretrained")
    image_choice = ImageChoice(decode_small_file(file.read_bytes(), file.name), "a cat", file)
    return ExplorerScene(image_choice, choice, hookviz.prepare_input(model, file), None, False)


def test_the_cat_opens_on_its_eyes_and_nothing_that_was_not_measured_opens_on_a_channel(
    scene: ExplorerScene,
) -> None:
    assert opening(scene) == {"layer": "features.11.squeeze", "channel": "21", "part": "eyes"}
    choice, image_choice = scene.choice, scene.image_choice
    drawn = next(sample.path for sample in samples() if sample.kind == "drawn")
    for other in (
        replace(scene, choice=replace(choice, weights="random")),
        replace(scene, choice=replace(choice, mask=ChannelMask("features.0", (1,)))),
        replace(scene, choice=replace(choice, spec=catalog.find_model("shapesnet"))),
        replace(scene, image_choice=replace(image_choice, file=None)),
        replace(scene, image_choice=replace(image_choice, file=drawn)),
        replace(scene, size=320),
        replace(scene, whole=True),
    ):
        assert opening(other) is None
