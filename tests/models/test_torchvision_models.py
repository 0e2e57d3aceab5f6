import pytest
import torch
from torch import nn
from torchvision import models

import hookviz
from hookviz.models import architectures, catalog, torchvision_models


def test_every_network_is_listed_with_the_figures_of_torchvisions_own_weights() -> None:
    listed = {spec.name for spec in torchvision_models.specs() if spec.task == "classification"}
    assert listed == set(models.list_models(module=models))
    assert len(listed) == 80
    steps = hookviz.Preprocess(resize=256, crop=224, interpolation="bicubic", antialias=True)
    assert torchvision_models.preprocess("efficientnet_b0") == steps
    for name in ("vit_b_16", "vit_b_32", "vit_h_14"):  # for the images of its weights
        network = architectures.build_without_memory(name, 1000)
        count = sum(each.numel() for each in network.parameters())
        assert count == models.get_model_weights(name).DEFAULT.meta["num_params"]
    spec = catalog.find_model("resnet34")
    assert (spec.title, spec.family, spec.parameters) == ("ResNet-34", "ResNet", 21_797_672)
    assert spec.accuracy == 73.314
    assert spec.trained_on == "ImageNet-1K"
    assert spec.download_bytes == pytest.approx(87_319_819, rel=1e-4)  # the real file's bytes


def test_no_network_of_the_catalog_needs_building_to_be_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torchvision_models.specs.cache_clear()
    monkeypatch.setattr(nn.Module, "__init__", None)
    hookviz.list_models()
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("name", "title", "family"),
    [
        ("vit_b_16", "ViT-B/16", "ViT"),
        ("swin_t", "Swin-T", "Swin"),
        ("swin_v2_b", "Swin V2-B", "Swin"),
        ("maxvit_t", "MaxViT-T", "MaxViT"),
        ("fcn_resnet50", "FCN ResNet-50", "FCN"),
        ("deeplabv3_resnet101", "DeepLabV3 ResNet-101", "DeepLabV3"),
        ("maskrcnn_resnet50_fpn_v2", "Mask R-CNN ResNet-50 FPN V2", "Mask R-CNN"),
        ("wide_resnet50_2", "Wide ResNet-50-2", "ResNet"),
        ("r2plus1d_18", "R(2+1)D-18", "Video ResNet"),
        ("swin3d_t", "Swin3D-T", "Swin3D"),
        ("mvit_v2_s", "MViT V2-S", "MViT"),
    ],
)
def test_titles_are_as_people_write_them(name: str, title: str, family: str) -> None:
    spec = catalog.find_model(name)
    assert (spec.title, spec.family) == (title, family)


def test_networks_for_video_take_clips_as_their_weights_were_measured() -> None:
    listed = {spec.name: spec for spec in torchvision_models.specs() if spec.task == "video"}
    assert set(listed) == set(models.list_models(module=models.video))
    steps = {name: torchvision_models.preprocess(name) for name in listed}
    frames = {name: each.frames for name, each in steps.items()}
    assert (frames["r3d_18"], frames["swin3d_t"], frames["s3d"]) == (16, 32, 32)
    for name, each in steps.items():
        preset = models.get_model_weights(name).DEFAULT.transforms()
        assert (each.crop, each.crop) == tuple(preset.crop_size)
        assert each.resize == min(preset.resize_size)
        assert [*each.mean, *each.std] == [*preset.mean, *preset.std]
    assert (listed["s3d"].accuracy, listed["s3d"].trained_on) == (68.368, "Kinetics-400")
