"""What a forward hook returns takes the output's place."""

import torch
from torch import nn

CHANNEL = 0  # from 0 to 7
FACTOR = 0.0  # one of 0.0, 0.5, 1.0, 2.0

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 3),
)
image = torch.zeros(1, 1, 32, 32)
image[..., 8:24, 8:24] = 1
seen = {}


def change(module, inputs, output):
    changed = output.clone()
    changed[:, CHANNEL] *= FACTOR
    seen.update({"was": output.detach(), "is": changed.detach()})
    return changed  # the network goes on with this


def show(when, scores):
    print(when, *(f"{score:+.3f}" for score in scores[0].tolist()))


before = network(image)
handle = network[1].register_forward_hook(change)
after = network(image)
handle.remove()
again = network(image)

show("before: ", before)
show("changed:", after)
show("again:  ", again)
difference = (after - before).abs().max().item()
left = (again - before).abs().max().item()
pictures = {
    "as it was": seen["was"][0, CHANNEL],
    "changed": seen["is"][0, CHANNEL],
}
