"""A hook that is not removed is called in every later pass."""

import torch
from torch import nn

PASSES = 4  # from 1 to 6
REMOVE = False  # one of False, True

torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU())
image = torch.rand(1, 1, 32, 32)
called = 0


def count(module, inputs, output):
    global called
    called += 1


for turn in range(PASSES):
    handle = network[0].register_forward_hook(count)
    called = 0
    network(image)
    print(f"pass {turn + 1}: the hook was called {called}×")
    if REMOVE:
        handle.remove()

left = len(network[0]._forward_hooks)
print(f"hooks left on the layer: {left}")
