import re
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torchvision.models import resnet34

from hookviz.errors import HookVizError, ModelError, SettingError, UnknownLayerError
from hookviz.hooking.selection import select

NETWORK = resnet34(weights=None)
NAMES = [name for name, _ in NETWORK.named_modules()]
CONVS = [name for name, module in NETWORK.named_modules() if isinstance(module, nn.Conv2d)]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ("layer1.0.conv1", ["layer1.0.conv1"]),
        ("", [""]),
        (None, NAMES[1:]),
        (nn.Conv2d, CONVS),
        (nn.modules.conv._ConvNd, CONVS),
        ("layer3.*.conv?", [f"layer3.{block}.conv{part}" for block in range(6) for part in (1, 2)]),
        ("layer[12]", ["layer1", "layer2"]),
        (NETWORK.layer2, ["layer2"]),
        (lambda name, module: name == "fc" and isinstance(module, nn.Linear), ["fc"]),
        (["fc", nn.MaxPool2d, "conv1"], ["conv1", "maxpool", "fc"]),
        ((name for name in ("fc",)), ["fc"]),
        ([], []),
    ],
)
def test_each_way_of_choosing(layers: Any, expected: list[str]) -> None:
    assert list(select(NETWORK, layers)) == expected


def test_what_is_excluded_is_left_out() -> None:
    blocks_excluded = [name for name in NAMES[1:] if not re.match(r"layer\d", name)]
    assert list(select(NETWORK, None, "layer*")) == blocks_excluded
    assert list(select(NETWORK, nn.Conv2d, exclude="*.downsample.*")) == [
        name for name in CONVS if "downsample" not in name
    ]
    left = select(NETWORK, None, exclude=[nn.Conv2d, lambda name, _: "." in name])
    assert left == (
        "bn1",
        "relu",
        "maxpool",
        "layer1",
        "layer2",
        "layer3",
        "layer4",
        "avgpool",
        "fc",
    )
    assert select(NETWORK, "fc", exclude=nn.Dropout) == ("fc",)


@pytest.mark.parametrize(
    ("layers", "exclude", "kind", "said"),
    [
        *(
            (function, (), SettingError, rf"is a function .* nearest one is '{nearest}'\.")
            for function, nearest in (
                ("layer1.0.relu() after conv1", "layer1.0.conv1"),
                ("layer2.relu() at the start", "layer2"),
            )
        ),
        ("stage1.0.relu() after conv1", (), UnknownLayerError, "stage1"),
        ("layer1.0.conv3", (), UnknownLayerError, "'layer1.0.conv1'"),
        ("layer9.*", (), UnknownLayerError, "There is no layer in this ResNet called 'layer9.*'"),
        (["fc", "cnov1"], (), UnknownLayerError, "'conv1'"),
        (None, "cnov1", UnknownLayerError, "'conv1'"),
        (nn.ConvTranspose2d, (), UnknownLayerError, "Did you mean 'Conv2d'"),
        (nn.ReLU(), (), SettingError, "This ReLU is no part of the ResNet"),
        (lambda _name, _module: False, (), SettingError, "no layer of this ResNet.*'conv1'"),
        ("fc", nn.Linear, SettingError, "all that are chosen are excluded"),
        (3, (), SettingError, "3 chooses no layers.*nn.Conv2d"),
        (int, (), SettingError, "chooses no layers"),
    ],
)
def test_what_chooses_nothing_says_what_would(
    layers: Any, exclude: Any, kind: type[HookVizError], said: str
) -> None:
    with pytest.raises(kind, match=said):
        select(NETWORK, layers, exclude)


def test_a_shared_module_is_chosen_once_unless_both_names_are_asked_for() -> None:
    relu = nn.ReLU()
    network = nn.Sequential(relu, nn.Conv2d(1, 1, 1), relu)
    assert select(network) == ("0", "1")
    assert select(network, nn.ReLU) == ("0",)
    assert select(network, ["2", nn.ReLU]) == ("2",)
    assert select(network, ["0", "2"]) == ("0", "2")
    assert select(network, None, exclude="2") == ("1",)
    with pytest.raises(SettingError, match='its own name is ""'):
        select(nn.ReLU())
    with pytest.raises(SettingError, match="This ReLU has no layers"):
        select(nn.ReLU(), lambda _name, _module: True)
    assert select(nn.ReLU(), "") == ("",)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(nn.Sequential(nn.ReLU()))
    with pytest.raises(ModelError, match="TorchScript"):
        select(scripted)


def test_names_may_have_what_wrappers_add() -> None:
    network = nn.Sequential(nn.ReLU(), nn.Sequential(nn.ReLU(), nn.Conv2d(1, 1, 1)))
    part: Any = torch.compile(network[1], backend="eager")
    network[1] = part
    for given, prefix in (
        (network, ""),
        (torch.compile(network, backend="eager"), "_orig_mod."),
        (nn.DataParallel(network), "module."),
    ):
        assert select(given) == ("0", "1", "1.0", "1.1")  # type: ignore[arg-type]
        for layers, expected in (
            (f"{prefix}1._orig_mod.0", ("1.0",)),
            (f"{prefix}1._orig_mod.*", ("1.0", "1.1")),
            ("1._orig_mod", ("1",)),
            (part, ("1",)),
            (part._orig_mod, ("1",)),
            (given, ("",)),
            (lambda name, module: isinstance(module, nn.Sequential) and name, ("1",)),
        ):
            assert select(given, layers) == expected  # type: ignore[arg-type]
        assert select(given, None, exclude=f"{prefix}1._orig_mod.*") == ("0", "1")  # type: ignore[arg-type]
    with pytest.raises(UnknownLayerError, match=r"called 'module\.0'"):
        select(network, "module.0")
