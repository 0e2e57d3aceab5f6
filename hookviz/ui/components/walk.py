"""Show the kernel's walk over one of its inputs, to play or to step from the chosen cell."""

from hookviz.explaining.layer_call import LayerCall
from hookviz.explorer.kernel_walk import kernel_walk
from hookviz.ui.components.files import show


def walk(
    call: LayerCall,
    channel: int,
    input_channel: int,
    cell: tuple[int, int],
    colormap: str,
    *,
    key: str = "walk",
    grey: tuple[str, str] | None = None,
) -> None:
    """Show how `channel` comes from the layer's input channel number `input_channel`.

    It starts at `cell`, (row, column) of the output; `colormap` is a diverging one. An input that
    is a grey picture, 0 black to 1 white, is drawn as one where `grey` says what the two maps are.
    """
    data = kernel_walk(call, channel, input_channel, cell)
    if grey is not None:
        data = {**data, "grey": True, "says": grey}
    show("walk", key, {**data, "colours": colormap})
