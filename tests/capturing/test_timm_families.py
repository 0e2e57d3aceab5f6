"""One small network of each of timm's CNN families, with random weights, against plain hooks."""

import copy
import importlib.util
from typing import Any

import pytest
import torch

import hookviz
from tests.networks import random_input
from tests.plain_hooks import plain_hooks

pytestmark = [
    pytest.mark.sweep("by day other people's blocks: test_odd_networks.py"),
    pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed"),
    pytest.mark.filterwarnings("ignore"),  # timm's own
]

FAMILIES = (
    *("convmixer_768_32", "convnext_atto", "cs3darknet_s", "darknet17", "densenet121", "dla46_c"),
    *("dpn48b", "eca_nfnet_l0", "edgenext_xx_small", "ese_vovnet19b_slim_dw", "fasternet_t0"),
    *("fastvit_t8", "fbnetc_100", "focalnet_tiny_srf", "gernet_s", "ghostnet_050"),
    *("hardcorenas_a", "hgnetv2_b0", "hrnet_w18_small", "inception_next_atto", "inception_v3"),
    *("lcnet_035", "legacy_seresnet18", "legacy_xception", "mambaout_femto", "mixnet_s"),
    *("mobilenetv3_small_050", "mobilenetv4_conv_small_035", "nf_regnet_b0", "regnety_002"),
    *("repghostnet_050", "repvgg_a0", "repvit_m0_9", "res2net50_14w_8s", "resnest14d"),
    *("resnet10t", "resnetv2_18", "rexnet_100", "selecsls42", "skresnet18", "starnet_s1"),
    *("tf_efficientnetv2_b0", "tinynet_e", "tresnet_m", "xception41"),
)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_shown_as_it_computes(name: str) -> None:
    model = hookviz.load_model(f"timm/{name}", "random")
    image = random_input(0, side=96)
    truth = plain_hooks(copy.deepcopy(model.network), image)
    cap = hookviz.capture(model, image)
    assert list(cap) == list(truth.convs)
    assert all(torch.equal(cap[address].values, truth.activations[address][0]) for address in cap)
    assert cap.logits is not None
    assert torch.equal(cap.logits, truth.output[0])
    verdict: Any = hookviz.run_lens("verify", model, image).panels[0]
    assert verdict.tone == "good", verdict.text
