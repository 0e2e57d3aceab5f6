from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import hookviz
from tests.networks import Tiny, as_model, random_input, seeded


@pytest.mark.parametrize("name", ["shapesnet", "squeezenet1_1"])
@pytest.mark.parametrize("method", ["smallest weights", "channels by L1 norm"])
def test_a_pruned_model_is_had_again_to_the_bit(name: str, method: str, tmp_path: Path) -> None:
    model = hookviz.load_model(name, "random")
    pruned = hookviz.prune(model, 0.5, method)
    path = hookviz.save_weights(pruned, tmp_path / "pruned.safetensors")
    again = hookviz.load_model(name, path)
    image = random_input(2, 64)
    one, other = (hookviz.capture(each, image).logits for each in (pruned, again))
    assert one is not None
    assert other is not None
    assert torch.equal(one, other)
    assert again.digest == pruned.digest
    assert again.weights == "pruned.safetensors"


def test_what_is_pruned_of_a_network_of_ones_own_is_written(noise: Tensor, tmp_path: Path) -> None:
    network = seeded(Tiny)
    pruned = hookviz.prune(network, 0.5)
    written = load_file(hookviz.save_weights(pruned, tmp_path / "pruned.safetensors"))
    assert int((written["conv2.weight"] == 0).sum()) > 0
    assert int((network.conv2.weight == 0).sum()) == 0
    other = seeded(Tiny)
    other.load_state_dict(written)
    shown = hookviz.capture(pruned, noise)["conv2"].values
    assert torch.equal(shown, hookviz.capture(other, noise)["conv2"].values)
    other.load_state_dict(load_file(hookviz.save_weights(network, str(tmp_path / "a.safetensors"))))
    assert torch.equal(other(noise), network(noise))  # of ones own as it stands
    for path, reason in (
        ("tiny.pth", r"tiny.pth.*does not end in .safetensors"),
        ("none/tiny.safetensors", "can't be written: No such file"),
    ):
        with pytest.raises(hookviz.WeightsError, match=reason):
            hookviz.save_weights(network, tmp_path / path)


def test_shared_and_scattered_tensors_are_written(tmp_path: Path) -> None:
    def build() -> nn.Module:
        network = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1))
        network[1].weight = network[0].weight
        network[0].bias = nn.Parameter(torch.arange(6.0)[::2])
        return network

    model = as_model(seeded(build))
    held = load_file(hookviz.save_weights(model, tmp_path / "shared.safetensors"))
    assert held.keys() == model.network.state_dict().keys()
    assert all(torch.equal(held[key], value) for key, value in model.network.state_dict().items())
