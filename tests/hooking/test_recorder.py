"""What is recorded of a pass, and what of it was overwritten later."""

import torch
from torch import nn

from hookviz.hooking import hooks
from hookviz.hooking.recorder import Recorder
from tests.networks import Tiny, random_input, seeded


def test_recorder_notices_a_write_through_a_view() -> None:
    layer = nn.Identity()
    recorder = Recorder()
    network = nn.Sequential(layer, nn.Flatten())
    with hooks.observe(network, ["0"], recorder.see):
        flat = network(torch.ones(1, 2, 2, 2))
    assert recorder.overwritten_layers() == frozenset()
    flat.mul_(2)
    assert recorder.overwritten_layers() == {"0"}


def test_recorder_copies_where_asked() -> None:
    network = seeded(Tiny)
    recorder = Recorder(copy=["conv1"])
    image = random_input(0)
    with torch.no_grad(), hooks.observe(network, ["conv1", "conv2"], recorder.see):
        network(image)
        expected = network.conv1(image)
    first = recorder.records[0].tensor
    assert torch.equal(first, expected)  # the ReLU behind it writes in place
    assert recorder.overwritten_layers() == {"conv2"}


def test_recorder_copies_nothing_of_the_last_call_and_still_notices_a_write() -> None:
    layer, recorder = nn.Identity(), Recorder(copy=["0"])
    with hooks.observe(nn.Sequential(layer), ["0"], lambda call: recorder.see(call, is_last=True)):
        output = nn.Sequential(layer)(torch.ones(1, 2))
    assert recorder.records[0].tensor.data_ptr() == output.data_ptr()
    output.mul_(2)
    assert recorder.overwritten_layers() == {"0"}
