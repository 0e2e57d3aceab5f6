"""A pass that fails never reaches handle.remove()."""

import torch
from torch import nn

USE_FINALLY = False  # one of False, True

torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU())
# three channels, and the layer takes one
wrong_image = torch.rand(1, 3, 32, 32)


def keep(module, inputs, output):
    return None  # what it puts out stays as it is


def look():
    handle = network[1].register_forward_hook(keep)
    network(wrong_image)
    handle.remove()


def look_and_tidy_up():
    handle = network[1].register_forward_hook(keep)
    try:
        network(wrong_image)
    finally:
        handle.remove()


try:
    look_and_tidy_up() if USE_FINALLY else look()
except RuntimeError:
    print("the pass failed")
left = len(network[1]._forward_hooks)
print(f"hooks left on the layer: {left}")
