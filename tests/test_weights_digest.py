import subprocess
import sys

import pytest
import torch
from torch import nn

from hookviz.weights_digest import fingerprint, weights_digest
from tests.networks import Tiny, seeded


def test_another_process_makes_the_same_digest() -> None:
    program = (
        "from hookviz.weights_digest import weights_digest\n"
        "from tests.networks import Tiny, seeded\n"
        "print(weights_digest(seeded(Tiny)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == weights_digest(seeded(Tiny))


def test_a_digest_is_of_names_values_and_what_stands_for_them() -> None:
    network = seeded(Tiny)
    before = weights_digest(network)
    network.train(not network.training)
    network.conv1.register_forward_hook(lambda *_: None)
    assert weights_digest(network) == before == weights_digest(seeded(Tiny))
    with torch.no_grad():
        network.conv1.weight[0, 0, 0, 0] += 1
    changed = weights_digest(network)
    assert changed != before
    with torch.no_grad():
        network.conv1.weight.copy_(seeded(Tiny).conv1.weight)
    assert weights_digest(network) == before
    assert weights_digest(seeded(Tiny).double()) != before
    bias = torch.ones(4)
    replaced = weights_digest(network, {"conv1.bias": bias})
    assert replaced != weights_digest(network)
    with torch.no_grad():
        assert network.conv1.bias is not None
        network.conv1.bias.copy_(bias)
    assert weights_digest(network) == replaced


def test_a_fingerprint_is_another_one_after_a_write_a_tensor_or_a_module() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    norm = network[1]
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None
    seen = [fingerprint(network)]
    assert fingerprint(network) == seen[0]
    kept = [*network.modules(), *network.parameters()]  # identities stay taken
    with torch.no_grad():
        norm.running_mean += 1
        seen.append(fingerprint(network))
        norm.weight.mul_(2)
        seen.append(fingerprint(network))
    norm.weight = nn.Parameter(torch.ones(4))
    seen.append(fingerprint(network))
    network.append(nn.ReLU())
    seen.append(fingerprint(network))
    network.requires_grad_(False).eval()
    seen.append(fingerprint(nn.Sequential(*network)))
    assert len(set(seen)) == len(seen)
    assert kept


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.complex64, torch.bool, torch.int8])
def test_tensors_of_any_kind_count(dtype: torch.dtype) -> None:
    network = nn.Module()
    network.kept = nn.Buffer(torch.zeros(2, 3).to(dtype).t())
    before = weights_digest(network)
    with torch.no_grad():
        network.kept[0, 1] = 1
    assert weights_digest(network) != before
