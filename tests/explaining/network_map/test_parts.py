import torch
from torch import Tensor, nn

from hookviz.capturing.inputs import prepare
from hookviz.explaining.network_map.followed_pass import ExecutionTrace, follow_pass
from hookviz.explaining.network_map.parts import ENTRY, EXIT, network_map
from hookviz.types import Model
from tests.networks import as_model, seeded


class Branches(nn.Module):
    """A block with a shortcut that runs twice, a concatenation with the image, and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(nn.ReLU(), nn.Conv2d(3, 3, 1)))
        self.last = nn.Conv2d(6, 4, 1)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, images: Tensor) -> Tensor:
        once = self.block(images)
        twice = self.block(once) + once
        maps = self.last(torch.cat([twice, images], 1))
        tokens = maps.flatten(2).transpose(1, 2)
        mixed: Tensor = self.attention(tokens, tokens, tokens)[0]
        return mixed


def traced(model: Model, image: object) -> ExecutionTrace:
    return follow_pass(model, prepare(model, image), joins=True)


def test_blocks_hold_what_ran_in_them_and_lines_pass_their_borders(noise: Tensor) -> None:
    whole = network_map(traced(as_model(seeded(Branches)), noise), "Branches")
    assert [str(part.address) for part in whole.parts] == [
        *("block", "block#1", "add", "cat", "last", "attention"),
    ]
    assert set(whole.lines) == {
        *((ENTRY, 0), (0, 1), (0, 2), (1, 2), (2, 3), (ENTRY, 3), (3, 4), (4, 5), (5, EXIT)),
    }
    block = whole.parts[0]
    assert set(block.lines) == {(ENTRY, 0), (0, 1), (1, EXIT)}
    assert [str(part.address) for part in block.parts[1].parts] == ["block.1.0", "block.1.1"]


def test_what_is_in_the_largest_of_a_few_blocks_lies_beside_the_others(noise: Tensor) -> None:
    features = nn.Sequential(*(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()) for _ in range(5)))
    model = as_model(nn.Sequential(features, nn.Sequential(nn.Flatten(), nn.Linear(768, 2))))
    whole = network_map(traced(model, noise))
    names = [str(part.address) for part in whole.parts]
    assert names == ["0.0", "0.1", "0.2", "0.3", "0.4", "1"]
