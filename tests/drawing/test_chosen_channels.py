import numpy as np

from hookviz.drawing.chosen_channels import with_channels
from hookviz.drawing.grid import make_grid


def test_some_channels_keep_the_whole_layers_colours_in_an_order_of_their_own() -> None:
    maps = np.random.default_rng(0).normal(size=(9, 5, 7)).astype(np.float32)
    for scale in ("symmetric", "layer", "channel"):
        whole = make_grid(maps, scale=scale)
        some = with_channels(whole, maps, [7, 0, 3])
        assert some.order.tolist() == [7, 0, 3]
        assert some.shown == "3 of 9 shown"
        assert some.legend == whole.legend
        for channel in (7, 0, 3):
            np.testing.assert_array_equal(
                some.channel_pixels(channel), whole.channel_pixels(channel)
            )
        assert some.png().startswith(b"\x89PNG")
