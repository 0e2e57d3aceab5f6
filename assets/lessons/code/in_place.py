"""What a hook holds may be written over later."""

import torch
from torch import nn

CLONE = False  # one of False, True

torch.manual_seed(0)
network = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(inplace=True))
image = torch.zeros(1, 1, 32, 32)
image[..., 8:24, 8:24] = 1
seen = {}


def keep(module, inputs, output):
    output = output.detach()
    seen["conv"] = output.clone() if CLONE else output


handle = network[0].register_forward_hook(keep)
network(image)
handle.remove()

conv = network[0](
    image
).detach()  # the conv layer by itself: what it really puts out
kept, put_out = seen["conv"][0, 0], conv[0, 0]
lowest, true_lowest = kept.min().item(), put_out.min().item()
print(f"lowest value kept:    {lowest:+.3f}")
print(f"lowest value put out: {true_lowest:+.3f}")
wrong = (kept != put_out).float().mean().item()
print(f"values that are wrong: {wrong:.0%}")
pictures = {"as kept": kept, "as put out": put_out}
