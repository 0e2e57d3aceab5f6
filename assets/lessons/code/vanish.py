"""A hook at every layer of two deep stacks shows gradients."""

import torch
from torch import nn

# %% The hook
DEPTH = 10  # from 2 to 20
SCALE = 1.0  # one of 0.25, 0.5, 1.0, 2.0, 4.0


def gradients_of(activation):
    torch.manual_seed(0)
    layers = [nn.Linear(64, 64) for _ in range(DEPTH)]
    for layer in layers:
        # made for ReLU: what passes keeps its size
        nn.init.kaiming_normal_(layer.weight)
        layer.weight.data *= SCALE
    network = nn.Sequential(
        *(part for layer in layers for part in (layer, activation))
    )
    norms = []

    def look(module, inputs, output):
        output.register_hook(
            lambda gradient: norms.append(gradient.norm().item())
        )

    handles = [
        layer.register_forward_hook(look) for layer in layers
    ]
    network(torch.randn(16, 64)).square().mean().backward()
    for handle in handles:
        handle.remove()
    return norms[::-1]  # the way back began at the last layer


# %% Print and draw
bars = {
    "sigmoid": gradients_of(nn.Sigmoid()),
    "ReLU": gradients_of(nn.ReLU()),
}
shrinks = bars["sigmoid"][0] / bars["sigmoid"][-1]
holds = bars["ReLU"][0] / bars["ReLU"][-1]
for name, norms in bars.items():
    print(f"{name:8} first {norms[0]:.1e}, last {norms[-1]:.1e}")
