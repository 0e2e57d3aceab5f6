"""Other people's extractors of features, whose copies are odd: each against plain hooks."""

import importlib.util
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision.models import get_model
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

import hookviz
from tests.networks import random_input
from tests.plain_hooks import equal, equal_outputs, plain_hooks, plain_pass

SIDE = 64
pytestmark = pytest.mark.filterwarnings("ignore")  # torchvision's and timm's own


def assert_as_it_computes(own: nn.Module, image: Tensor) -> None:
    """Some layers to the last bit, as the person's own module computes them, and it goes on so."""
    own.eval()
    truth = plain_hooks(own, image)
    names = list(dict.fromkeys(map(layer_of, truth.activations)))
    chosen = {*names[:: max(1, len(names) // 8)], names[-1]}
    model = hookviz.wrap(own, hookviz.Preprocess(resize=SIDE, crop=SIDE))
    cap = hookviz.capture(model, image, chosen)
    expected = [address for address in truth.activations if layer_of(address) in chosen]
    assert list(cap) == expected
    for address in expected:
        assert equal(cap[address].values, truth.activations[address][0]), address
    assert not any(module.training for module in own.modules())
    assert equal_outputs(plain_pass(own, image), truth.output)


def layer_of(address: str) -> str:
    return address.partition("#")[0].partition("[")[0]


DAY = ("squeezenet1_1", "mobilenet_v3_small")
NIGHT = (
    *("alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s"),
    *("googlenet", "inception_v3", "mnasnet0_5", "mobilenet_v2", "regnet_x_400mf"),
    *("regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5"),
    *("resnet34", "squeezenet1_0", "vgg11_bn"),
)


def extractor_of(name: str) -> nn.Module:
    """Torchvision's, of four nodes from the first to the last; the same weights every time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = get_model(name, weights=None, **_SMALL.get(name, {})).eval()
    _, nodes = get_graph_node_names(network)
    inner = nodes[1:]  # the first is the input
    chosen = [*inner[len(inner) // 4 :: len(inner) // 4][:3], inner[-1]]
    extractor: nn.Module = create_feature_extractor(network, list(dict.fromkeys(chosen)))
    return extractor


_SMALL: dict[str, dict[str, Any]] = {
    "googlenet": {"init_weights": False, "aux_logits": False},
    "inception_v3": {"init_weights": False, "aux_logits": False},
}


@pytest.mark.parametrize(
    "name",
    [
        *DAY,
        *(pytest.param(name, marks=pytest.mark.sweep("by day two of them")) for name in NIGHT),
    ],
)
def test_create_feature_extractor(name: str) -> None:
    side = 96 if name == "inception_v3" else SIDE
    assert_as_it_computes(extractor_of(name), random_input(0, side))


FAMILIES = (
    *("resnet10t", "convnext_atto", "efficientnet_lite0", "mobilenetv3_small_050", "regnetx_002"),
    *("densenet121", "vgg11", "ghostnet_050", "hrnet_w18_small", "cs3darknet_s"),
    *("dla46_c", "res2net50_14w_8s", "mobilenetv4_conv_small_035", "fbnetc_100", "repvgg_a0"),
)
FORMS = ("default", "list", "dict", "hook", "fx", "getter")
BY_DAY = {("resnet10t", form) for form in FORMS}


def _of_timm() -> Iterator[Any]:
    for name in FAMILIES:
        for form in FORMS:
            by_night = pytest.mark.sweep("by day every form of one family")
            marks = () if (name, form) in BY_DAY else (by_night,)
            yield pytest.param(name, form, marks=marks, id=f"{name}-{form}")


@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed")
@pytest.mark.parametrize(("name", "form"), list(_of_timm()))
def test_timms_features_only(name: str, form: str) -> None:
    own = features_of(name, form)
    if (name, form) in UNAVAILABLE:
        assert own is None, "timm has it now"
        return
    assert own is not None
    assert_as_it_computes(own, random_input(0, SIDE))


_BY_HOOKS_ALONE = (
    *("efficientnet_lite0", "mobilenetv3_small_050", "mobilenetv4_conv_small_035"),
    "fbnetc_100",
)
UNAVAILABLE = {
    *((name, form) for name in _BY_HOOKS_ALONE for form in ("list", "dict")),
    *(("hrnet_w18_small", form) for form in ("list", "dict", "hook", "fx")),
}
"""What timm itself can't build or run."""


def features_of(name: str, form: str) -> nn.Module | None:
    """Timm's backbone of a family in one of its forms; None where it has none that runs."""
    import timm  # noqa: PLC0415 - takes seconds

    chosen = {} if form == "default" else {"feature_cls": form}
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            network: nn.Module = timm.create_model(name, features_only=True, **chosen).eval()
            plain_pass(network, random_input(0, SIDE))
        except Exception:  # noqa: BLE001 - whatever timm raises
            return None
    return network
