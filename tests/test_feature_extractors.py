"""Other people's extractors of features, whose copies are odd: each against plain hooks."""

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


@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v3_small"])
def test_create_feature_extractor(name: str) -> None:
    """Torchvision's, of four nodes from the first to the last."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = get_model(name, weights=None).eval()
    _, nodes = get_graph_node_names(network)
    inner = nodes[1:]  # the first is the input
    chosen = [*inner[len(inner) // 4 :: len(inner) // 4][:3], inner[-1]]
    extractor = create_feature_extractor(network, list(dict.fromkeys(chosen)))
    assert_as_it_computes(extractor, random_input(0, SIDE))


@pytest.mark.parametrize("form", ["default", "list", "dict", "hook", "fx", "getter"])
def test_timms_features_only(form: str) -> None:
    timm = pytest.importorskip("timm")
    chosen = {} if form == "default" else {"feature_cls": form}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = timm.create_model("resnet10t", features_only=True, **chosen)
    assert_as_it_computes(network, random_input(0, SIDE))
