"""A small program of somebody who uses HookViz: it runs, and its types hold, in any environment."""

import torch
from torch import nn

import hookviz


def main() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
    model: hookviz.Model = hookviz.wrap(network, name="small")
    capture: hookviz.Capture = hookviz.capture(model, torch.rand(1, 3, 32, 32))
    channels: int = capture["2"].values.shape[0]
    grid: hookviz.Grid = hookviz.make_grid(capture["2"], sort="max")
    assert channels == 2
    assert grid.png().startswith(b"\x89PNG")
    layers: list[str] = [layer.name for layer in hookviz.list_layers(model)]
    assert layers == ["0", "2"], layers


if __name__ == "__main__":
    main()
