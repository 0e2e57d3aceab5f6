import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz
from hookviz.images import preprocess, reading
from hookviz.models import timm_models
from tests.pictures import picture

NAME = "timm/resnet18"


@pytest.fixture(autouse=True, scope="module")
def timm() -> Any:
    """Timm itself, which takes a second to import."""
    return pytest.importorskip("timm")


def test_timms_models_are_listed_by_family(timm: Any) -> None:
    timm_models.specs.cache_clear()
    assert not timm_models.is_listed()  # what asks for them now waits for an import
    specs = {spec.name: spec for spec in hookviz.list_models()}
    assert timm_models.is_listed()
    assert specs[NAME].family == "timm resnet"
    assert len([name for name in specs if name.startswith("timm/")]) == len(timm.list_models())


@pytest.mark.parametrize(
    "name", ["resnet18", "efficientnet_b0", "convnext_tiny", "mobilenetv3_small_100"]
)
def test_preprocessing_is_timms_own_to_the_bit(timm: Any, name: str) -> None:
    steps = timm.data.resolve_data_config(
        {}, pretrained_cfg=timm.models.get_pretrained_cfg(name).to_dict()
    )
    theirs = timm.data.create_transform(**steps)
    ours = timm_models.preprocess(f"timm/{name}")
    for width, height in ((500, 375), (123, 457), (64, 64)):
        image = picture(3, width, height)
        made = preprocess.prepare(reading.read(image), ours)
        assert torch.equal(made.tensor[0], theirs(image)), (width, height)


def test_a_model_is_loaded_and_captured() -> None:
    model = hookviz.load_model(NAME, "random")
    assert hookviz.load_model(NAME, "random").digest == model.digest
    assert len(model.categories) == 1000
    cap = hookviz.capture(model, picture(1, 300, 200))
    conv = model.network.get_submodule("conv1")
    with torch.no_grad():
        assert torch.equal(cap["conv1"].values, conv(cap.input)[0])
    assert len(cap.predictions()) == 5


def test_a_checkpoint_with_other_classes_fits(timm: Any, tmp_path: Path) -> None:
    torch.save(timm.create_model("resnet18", num_classes=7).state_dict(), tmp_path / "seven.pth")
    model = hookviz.load_model(NAME, tmp_path / "seven.pth")
    assert model.categories == ()
    assert len(hookviz.capture(model, picture()).predictions(9)) == 7


def test_a_backbone_without_a_head_is_loaded_too() -> None:
    model = hookviz.load_model("timm/resnet50_clip_gap", "random")
    assert model.categories == ()
    assert "stem.conv1.conv" in hookviz.capture(model, torch.zeros(1, 3, 64, 64))


@pytest.mark.sweep("by day torchvision's: tests/models/fetching")
def test_pretrained_weights_without_a_network_say_so() -> None:
    program = (
        "import hookviz\n"
        "try:\n    hookviz.load_model('timm/resnet18')\n"
        "except hookviz.WeightsError as error:\n    print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"HF_HUB_OFFLINE": "1", "HF_HOME": "nowhere", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(hookviz.__file__).parent.parent,
    )
    assert run.stdout.startswith("The pretrained weights of timm/resnet18 can't be had by timm")
