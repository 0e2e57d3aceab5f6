"""See the gradient at what a layer puts out."""

# %% A small network
import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 3),
    nn.ReLU(),
    nn.MaxPool2d(3),
    nn.Flatten(),
    nn.Linear(800, 3),
)
image = torch.zeros(1, 1, 32, 32)
image[..., 8:24, 8:24] = 1

# %% The hook
CHANNEL = 0  # from 0 to 7
SCORE = 0  # from 0 to 2
seen = {}


def keep_gradient(gradient):  # on the way back
    seen["gradient"] = gradient


def keep(module, inputs, output):  # on the way there
    output.register_hook(keep_gradient)


handle = network[1].register_forward_hook(keep)
score = network(image)[0, SCORE]  # there
score.backward()  # and back
handle.remove()

# %% Print and draw
gradient = seen["gradient"][0, CHANNEL]
nonzero = (gradient != 0).float().mean().item()
print(f"score {SCORE}: {score.item():+.3f}")
print(f"channel {CHANNEL}: {nonzero:.0%} of the gradient is not 0")
pictures = {"image": image[0, 0], "gradient": gradient}
