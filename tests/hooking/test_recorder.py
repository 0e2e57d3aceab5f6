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
    tiny, image, recorder = seeded(Tiny), random_input(0), Recorder(copy=["conv1"])
    with torch.no_grad(), hooks.observe(tiny, ["conv1", "conv2"], recorder.see):
        tiny(image)
        expected = tiny.conv1(image)
    # It copies where asked: the ReLU behind it writes in place.
    assert torch.equal(recorder.records[0].tensor, expected)
    assert recorder.overwritten_layers() == {"conv2"}
    copying = Recorder(copy=["0"])  # which copies nothing of the last call, and notices a write
    with hooks.observe(network, ["0"], lambda call: copying.see(call, is_last=True)):
        flat = network(torch.ones(1, 2, 2, 2))
    assert copying.records[0].tensor.data_ptr() == flat.data_ptr()
    flat.mul_(2)
    assert copying.overwritten_layers() == {"0"}
