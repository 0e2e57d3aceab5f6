"""Register a hook, run the network, remove the hook."""

import torch
from torch import nn

CHANNEL = 0  # from 0 to 7

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 3),
)
image = torch.zeros(1, 1, 32, 32)
image[..., 8:24, 8:24] = 1  # a white square on black
seen = {}


def keep(module, inputs, output):
    seen["conv"] = output.detach().clone()


handle = network[0].register_forward_hook(keep)  # register
scores = network(image)  # the hook is called on the way
handle.remove()  # remove

channels, rows, columns = seen["conv"].shape[1:]
print(f"{channels} channels of {rows}×{columns} cells")
chosen = seen["conv"][0, CHANNEL]
print(f"channel {CHANNEL}: mean {chosen.mean():.3f}")
pictures = {"image": image[0, 0], "what it put out": chosen}
