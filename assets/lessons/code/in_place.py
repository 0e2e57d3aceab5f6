"""What a hook holds may be written over later."""

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
LAYER = "0"  # the first conv layer
CHANNEL = 0  # a channel of it
CLONE = False  # one of False, True
seen = {}


def keep(module, inputs, output):
    output = output.detach()
    seen[LAYER] = output.clone() if CLONE else output


conv = model.get_submodule(LAYER)
handle = conv.register_forward_hook(keep)
nn.Sequential(conv, nn.ReLU(inplace=True))(batch)
handle.remove()

# %% Print and draw
put_out = conv(batch).detach()[0, CHANNEL]  # the layer by itself
kept = seen[LAYER][0, CHANNEL]
lowest, true_lowest = kept.min().item(), put_out.min().item()
print(f"lowest value kept:    {lowest:+.3f}")
print(f"lowest value put out: {true_lowest:+.3f}")
wrong = (kept != put_out).float().mean().item()
print(f"values that are wrong: {wrong:.0%}")
pictures = {"as kept": kept, "as put out": put_out}
