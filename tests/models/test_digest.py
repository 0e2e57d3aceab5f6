import torch

from hookviz.models.digest import weights_digest
from tests.conftest import Tiny, seeded


def test_digests_tell_weights_apart() -> None:
    networks = [seeded(Tiny), seeded(Tiny)]
    one, same = map(weights_digest, networks)
    with torch.no_grad():
        networks[1].head.bias[0] += 1e-6
    assert one == same != weights_digest(networks[1])
