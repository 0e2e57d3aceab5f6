"""A hook at every conv layer: what a lambda in a loop knows."""

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
BIND = False  # one of False, True
seen = {}


def keep(name, output):
    seen[name] = tuple(output.shape[1:])


handles = []
for name, module in model.named_modules():
    if isinstance(module, nn.Conv2d):
        if BIND:  # the name as it is now
            hook = lambda m, i, o, name=name: keep(name, o)
        else:  # the name as it is when the hook is called
            hook = lambda m, i, o: keep(name, o)
        handles.append(module.register_forward_hook(hook))
model(batch)
for handle in handles:
    handle.remove()

# %% Print and draw
layers, found = len(handles), len(seen)
print(f"hooks: {layers}, names: {found}")
for place, (name, shape) in enumerate(seen.items()):
    if place < 6:
        print(f"{name or 'the network':>24} {shape}")
