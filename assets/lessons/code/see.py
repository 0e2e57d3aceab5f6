"""Register a hook, run the network, remove the hook."""

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
LAYER = "0"  # a conv layer
CHANNEL = 0  # a channel of it
seen = {}


def keep(module, inputs, output):
    seen[LAYER] = output.detach().clone()


layer = model.get_submodule(LAYER)
handle = layer.register_forward_hook(keep)  # register
model(batch)  # the hook is called on the way
handle.remove()  # remove

# %% Print and draw
maps = seen[LAYER][0]
channels, rows, columns = maps.shape
print(f"{LAYER}: {channels} channels of {rows}×{columns} cells")
chosen = maps[CHANNEL]
print(f"channel {CHANNEL}: mean {chosen.mean():.3f}")
pictures = {"image": batch[0].mean(0), "what it put out": chosen}
