"""Clamp a gradient on its way back."""

import torch
from torch import nn

LIMIT = 0.001  # one of 0.0001, 0.001, 0.01, 0.1, 1.0

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(6272, 3),
)
images, labels = (
    torch.rand(4, 1, 32, 32),
    torch.tensor([0, 1, 2, 0]),
)
largest = {}


def clamp(module, inputs, output):
    def clamped(gradient):
        largest["that came"] = gradient.abs().max().item()
        return gradient.clamp(-LIMIT, LIMIT)

    output.register_hook(clamped)


def gradient_of_first_layer():
    network.zero_grad()
    nn.functional.cross_entropy(network(images), labels).backward()
    return network[0].weight.grad.norm().item()


plain = gradient_of_first_layer()
handle = network[2].register_forward_hook(clamp)
tamed = gradient_of_first_layer()
handle.remove()

arrived = largest["that came"]
print(f"largest gradient that came:  {arrived:.6f}")
print(f"largest that was passed on:  {min(arrived, LIMIT):.6f}")
print(f"first layer's weights plain: {plain:.6f}")
print(f"and with the clamp:          {tamed:.6f}")
