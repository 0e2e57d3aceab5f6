"""What edited models compute, held against plain hooks; and that nobody else's passes change."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz import edits
from hookviz.capturing.cache import Budget
from hookviz.errors import SettingError, UnknownLayerError
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.types import Model
from tests.networks import Tiny, all_hooks, as_model, as_shared, random_input, seeded

EDITS = {
    "conv1": edits.zero(channels=[1]),
    "conv?": edits.scale(2),
    "head": lambda call: -call.output,
}


def plainly(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What conv1, conv2 and the head put out with `EDITS`, by hand."""
    network = seeded(Tiny).eval()
    with torch.no_grad():
        first = network.conv1(image)
        first[:, 1] = 0
        first = first * 2
        second = network.conv2(first.relu()) * 2
        scores = -network.head(second.relu().mean((2, 3)))
    return first[0], second[0], scores[0]


@pytest.mark.parametrize("make", [as_model, as_shared])
def test_all_that_takes_a_model_takes_edits(make: Callable[[nn.Module], Model]) -> None:
    model, image = make(seeded(Tiny)), random_input(0)
    plain = hookviz.capture(model, image[0])
    changed = hookviz.edited(model, EDITS)
    first, second, scores = plainly(image)
    for cap in (hookviz.capture(changed, image[0]), *hookviz.capture(changed, [image[0]])):
        assert torch.equal(cap["conv1"].values, first)
        assert torch.equal(cap["conv2"].values, second)
    found = hookviz.capture(changed, image[0])
    assert found.logits is not None
    assert torch.equal(found.logits, scores)
    lens = hookviz.run_lens("ablate", changed, image[0], layer="conv2", channels=[0])
    torch.testing.assert_close(torch.from_numpy(lens.values["logits_before"]), scores)
    channels = hookviz.run_lens("channels-that-matter", changed, image[0], layer="conv1", target=1)
    assert channels.values["logit_change"][1] == pytest.approx(0)  # it is 0 without an ablation
    again = hookviz.capture(model, image[0])
    assert again.logits is not None
    assert plain.logits is not None
    assert torch.equal(again.logits, plain.logits)
    assert all_hooks(changed) == 0
    assert changed.title == "Tiny with conv1, conv2, head edited"


@pytest.mark.parametrize("make", [as_model, as_shared])
def test_a_cache_has_both(make: Callable[[nn.Module], Model]) -> None:
    model, image, cache = make(seeded(Tiny)), random_input(0)[0], Budget(1 << 20).cache(1 << 20)
    changed = hookviz.edited(model, {"conv1": edits.zero})
    for _ in range(2):
        assert hookviz.capture(model, image, cache=cache)["conv1"].values.any()
        assert not hookviz.capture(changed, image, cache=cache)["conv1"].values.any()
    assert changed.digest != model.digest


def test_edits_add_up() -> None:
    model, image = as_model(seeded(Tiny)), random_input(0)[0]
    twice = hookviz.edited(hookviz.edited(model, {"conv1": edits.zero}), {"conv1": edits.add(3)})
    assert (hookviz.capture(twice, image)["conv1"].values == 3).all()


@pytest.mark.parametrize("make", [as_model, as_shared])
def test_a_look_within_a_pass_has_the_edits_of_its_own_model(
    make: Callable[[nn.Module], Model],
) -> None:
    model, image = make(seeded(Tiny)), random_input(0)
    changed = hookviz.edited(model, {"conv1": edits.scale(2)})
    plain, own = (hookviz.capture(each, image[0]).logits for each in (model, changed))
    assert plain is not None
    assert own is not None
    with private_replica(changed) as network:
        for each, scores in ((model, plain), (changed, own)):
            with private_replica(each) as inner:
                assert torch.equal(forward_pass(each, inner, image)[0], scores)
        assert torch.equal(forward_pass(changed, network, image)[0], own)


def test_what_is_no_edit_is_refused() -> None:
    model = as_model(seeded(Tiny))
    with pytest.raises(UnknownLayerError, match="conv3"):
        hookviz.edited(model, {"conv3": edits.zero})
    with pytest.raises(SettingError, match="3 is no edit"):
        hookviz.edited(model, {"conv1": 3})
    with pytest.raises(SettingError, match="is no mapping from layers to edits"):
        hookviz.edited(model, "conv1")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="no channel 9 in layer 'conv1'"):
        hookviz.capture(
            hookviz.edited(model, {"conv1": edits.zero(channels=[9])}), random_input(0)[0]
        )
