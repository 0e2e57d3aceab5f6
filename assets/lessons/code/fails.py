"""A pass that fails never reaches handle.remove()."""

# %% Set-up
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    nn.Conv2d(8, 8, 3),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 3),
)
batch = torch.zeros(1, 1, 32, 32)
batch[..., 8:24, 8:24] = 1  # a white square on black
names = {0: "one", 1: "two", 2: "three"}  # of classes

# %% The hook
USE_FINALLY = False  # one of False, True
LAYER = "0"  # the first conv layer
layer = model.get_submodule(LAYER)
wrong = torch.cat([batch, batch[:, :1]], 1)  # a channel too many


def look():
    handle = layer.register_forward_hook(lambda *_: None)
    model(wrong)
    handle.remove()


def look_and_tidy_up():
    handle = layer.register_forward_hook(lambda *_: None)
    try:
        model(wrong)
    finally:
        handle.remove()


try:
    look_and_tidy_up() if USE_FINALLY else look()
except RuntimeError:
    print("the pass failed")

# %% Print and draw
left = len(layer._forward_hooks)
print(f"hooks left on the layer: {left}")
