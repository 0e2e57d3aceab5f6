"""What a forward hook returns takes the output's place."""

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
FACTOR = 0.0  # one of -1.0, 0.0, 0.5, 2.0
seen = {}


def change(module, inputs, output):
    changed = output.clone()
    changed[:, CHANNEL] *= FACTOR
    seen.update({"was": output.detach(), "is": changed.detach()})
    return changed  # the network goes on with this


before = model(batch)
handle = model.get_submodule(LAYER).register_forward_hook(change)
after = model(batch)
handle.remove()
again = model(batch)

# %% Print and draw
print("scores, and with the hook")
for number, name in names.items():
    was, is_now = before[0, number], after[0, number]
    print(f"{was:6.2f} → {is_now:6.2f}  {name[:12]}")
difference = (after - before).abs().max().item()
left = (again - before).abs().max().item()
pictures = {
    "as it was": seen["was"][0, CHANNEL],
    "changed": seen["is"][0, CHANNEL],
}
