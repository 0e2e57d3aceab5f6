"""A hook that is not removed is called in every later pass."""

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
PASSES = 4  # from 1 to 6
REMOVE = False  # one of False, True
LAYER = "0"  # the first conv layer
kept = []


def keep(module, inputs, output):
    kept.append(output.detach())


layer = model.get_submodule(LAYER)
for turn in range(PASSES):
    handle = layer.register_forward_hook(keep)
    before = len(kept)
    model(batch)
    called = len(kept) - before
    print(f"pass {turn + 1}: called {called}×")
    if REMOVE:
        handle.remove()

# %% Print and draw
left = len(layer._forward_hooks)
tensors = len(kept)
megabytes = sum(each.numel() * 4 for each in kept) / 1e6
print(f"hooks left on the layer: {left}")
print(f"maps kept: {tensors} times, {megabytes:.1f} MB")
