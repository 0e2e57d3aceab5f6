import threading
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

import hookviz
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.hooking import replicas
from tests.networks import Tiny, random_input, seeded


def test_a_replica_shares_every_tensor_and_no_module() -> None:
    network = nn.Sequential(seeded(Tiny), nn.BatchNorm2d(1))
    replica = replicas.replicate(network)
    mine, theirs = network.state_dict(), replica.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(mine[key].data_ptr() == theirs[key].data_ptr() for key in mine)
    assert not set(map(id, network.modules())) & set(map(id, replica.modules()))


def test_a_replica_computes_the_same_without_the_hooks() -> None:
    network, image = seeded(Tiny).eval(), random_input(1)
    with torch.no_grad():
        expected = network(image)
        network.conv1.register_forward_hook(lambda *_: torch.zeros(()))
        assert torch.equal(replicas.replicate(network)(image), expected)


def test_a_borrowed_replica_is_nobody_elses_and_comes_back() -> None:
    network = seeded(Tiny)
    with replicas.borrow(network) as first, replicas.borrow(network) as second:
        assert len({id(network), id(first), id(second)}) == 3
    with replicas.borrow(network) as third:
        assert third is first or third is second


@pytest.mark.parametrize("spoil", ["hook", "mode"])
def test_a_spoiled_replica_does_not_come_back(spoil: str) -> None:
    network = seeded(Tiny).eval()
    with replicas.borrow(network) as spoiled:
        if spoil == "hook":
            spoiled.conv1.register_forward_hook(lambda *_: None)
        else:
            spoiled.train()
    with replicas.borrow(network) as other:
        assert other is not spoiled
        assert not other.training


def test_a_replica_comes_back_after_keyboard_interrupt() -> None:
    network = seeded(Tiny)
    with pytest.raises(KeyboardInterrupt), replicas.borrow(network) as first:
        raise KeyboardInterrupt
    with replicas.borrow(network) as second:
        assert second is first


def test_threads_never_hold_one_replica_together() -> None:
    network = seeded(Tiny)
    held: set[int] = set()
    clashes: list[int] = []
    guard = threading.Lock()

    def borrow_often() -> None:
        for _ in range(50):
            with replicas.borrow(network) as replica:
                with guard:
                    if id(replica) in held:
                        clashes.append(id(replica))
                    held.add(id(replica))
                with guard:
                    held.remove(id(replica))

    threads = [threading.Thread(target=borrow_often) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clashes == []


@pytest.mark.parametrize("norm", ["parametrized", "old"])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_weight_norm_keeps_working_in_a_replica(norm: str) -> None:
    conv = nn.Conv2d(3, 2, 3)
    normed: nn.Module = (
        parametrizations.weight_norm(conv) if norm == "parametrized" else weight_norm(conv)
    )
    network = nn.Sequential(normed)
    image = random_input(2)
    with torch.no_grad():
        network(image)
        assert torch.equal(replicas.replicate(network)(image), network(image))


def test_shapes_only_computes_shapes_without_memory() -> None:
    network = nn.Conv2d(3, 10_000, 3)
    on_meta = replicas.meta_copy(network)
    found: Tensor = on_meta(torch.empty(1, 3, 9_000, 9_000, device="meta"))
    assert found.shape == (1, 10_000, 8_998, 8_998)
    assert network.weight.device.type == "cpu"


def test_a_forgotten_network_is_freed_with_its_replicas() -> None:
    network = seeded(Tiny)
    with replicas.borrow(network):
        pass
    before = len(replicas._idle)
    del network
    assert len(replicas._idle) == before - 1


@dataclass(eq=False)
class _ByFields(nn.Module):
    """Equal to another one of the same width, whatever its weights and kernels are."""

    width: int
    kernel: int = 3

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByFields) and self.width == other.width

    def __hash__(self) -> int:
        return hash(self.width)

    def __post_init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, self.width, self.kernel)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.conv(images).relu()
        return found


def _two() -> tuple[_ByFields, _ByFields]:
    torch.manual_seed(0)
    return _ByFields(4), _ByFields(4, kernel=5)


def test_each_of_two_equal_networks_shows_its_own_maps() -> None:
    first, second = _two()
    assert first == second
    image = torch.rand(1, 3, 32, 32)
    for network in (first, second):
        shown = hookviz.capture(network, image)["conv"].values
        with torch.no_grad():
            assert torch.equal(shown, network.conv(image)[0])


def test_each_of_two_equal_networks_has_its_own_receptive_field() -> None:
    models = [hookviz.wrap(network) for network in _two()]
    sizes = [receptive_fields(model, (3, 32, 32))["conv"].size for model in models]
    assert sizes == [(3, 3), (5, 5)]
