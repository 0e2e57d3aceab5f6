"""Guided backpropagation, by a hook at every ReLU."""

# %% A small network
import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(
    *(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
    *(
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8192, 3),
    ),
)
row, column = torch.meshgrid(
    *2 * [torch.linspace(-1, 1, 64)], indexing="ij"
)
drawn = {
    "ring": ((row**2 + column**2).sqrt() - 0.6).abs() < 0.15,
    "cross": (row.abs() < 0.2) | (column.abs() < 0.2),
    "stripes": (12 * column).sin() > 0,
}

# %% The hook
PICTURE = "ring"  # one of "ring", "cross", "stripes"
image = drawn[PICTURE].float()[None, None].requires_grad_()


def guide(module, inputs, output):
    output.register_hook(lambda gradient: gradient.clamp(min=0))


(plain,) = torch.autograd.grad(network(image)[0, 0], image)
handles = [
    module.register_forward_hook(guide)
    for module in network
    if isinstance(module, nn.ReLU)
]
(guided,) = torch.autograd.grad(network(image)[0, 0], image)
for handle in handles:
    handle.remove()

# %% Print and draw
relus = len(handles)
print(f"negative gradients were dropped at {relus} ReLUs")
pictures = {
    "image": image.detach()[0, 0],
    "gradient": plain[0, 0]
    / plain.abs().max(),  # each by its own largest value
    "guided": guided[0, 0] / guided.abs().max(),
}
