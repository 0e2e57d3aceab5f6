from typing import Any

import pytest
import torch
from torch import nn

import hookviz
from hookviz.capturing.cache import Budget
from tests.networks import Tiny, seeded


def test_values_stay_in_the_layers_own_precision() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3)).to(torch.bfloat16)
    image = torch.rand(3, 8, 8)
    kept = hookviz.capture(network, image, dtype="same")["0"].raw
    assert kept.dtype == torch.bfloat16
    with torch.no_grad():
        assert kept.equal(network(image[None].to(torch.bfloat16))[0])
    assert hookviz.capture(network, image)["0"].raw.equal(kept.float())
    halves = hookviz.capture(network, [image, image], dtype=torch.float16)["0"].raw
    assert halves.dtype == torch.float16
    assert halves[0].equal(kept.half())
    cache = Budget(1 << 20).cache(1 << 20)
    hookviz.capture(network, image, cache=cache)
    used = cache.used  # which other storage neither fills nor reads
    assert hookviz.capture(network, image, cache=cache, dtype="same").forward_passes == 1
    assert cache.used == used


@pytest.mark.parametrize("batch", [False, True])
def test_gradients_go_back_through_what_keeps_its_graph(*, batch: bool) -> None:
    network = seeded(Tiny)
    image = torch.rand(2, 3, 16, 16, requires_grad=True) if batch else torch.rand(3, 16, 16)
    image.requires_grad_()
    cap = hookviz.capture(network, image, ["conv1", "relu", "head"], detach=False)
    cap["relu"].raw.square().sum().backward(retain_graph=True)
    ours = image.grad, network.conv1.weight.grad
    image.grad, network.conv1.weight.grad = None, None
    plain: list[torch.Tensor] = []
    handle = network.relu.register_forward_hook(lambda *call: plain.append(call[2].clone()))
    network.eval()(image if batch else image[None])
    handle.remove()
    plain[0].square().sum().backward()  # type: ignore[no-untyped-call]
    for own, theirs in zip(ours, (image.grad, network.conv1.weight.grad), strict=True):
        assert own is not None
        torch.testing.assert_close(own, theirs)
    assert not hookviz.capture(network, image, "conv1")["conv1"].raw.requires_grad
    assert not any(module._forward_hooks for module in network.modules())
    network = network.to(torch.bfloat16)  # what keeps its graph or precision is drawn and compared
    caps = [hookviz.capture(network, image[0] if batch else image, detach=False, dtype="same")]
    caps.append(hookviz.capture(network, caps[0].input[0], detach=False, dtype="same"))
    assert hookviz.make_grid(caps[0]["conv1"]).shown == "all 4 channels"
    assert hookviz.compare(caps[0], caps[1]).layers
    assert "conv1" in caps[0]._repr_html_()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "gpu"}, r"device='gpu' keeps no tensors here.*\"cpu\" does"),
        ({"device": "cuda:99"}, r"device='cuda:99' keeps no tensors here"),
        ({"dtype": "half"}, r"dtype='half' is no type of torch's.*torch\.float16"),
    ],
)
def test_what_keeps_nothing_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(hookviz.SettingError, match=said):
        hookviz.capture(seeded(Tiny), torch.rand(3, 16, 16), **options)
