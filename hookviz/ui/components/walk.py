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
    grey: tuple[str, str, str] | None = None,
) -> None:
    """Show how `channel` comes from the layer's input channel number `input_channel`.

    It starts at `cell`, (row, column) of the output; `colormap` is a diverging one. An input that
    is a grey picture, 0 black to 1 white, is drawn as one where `grey` says what it is, what a map
    with values below zero is, and what one without: that is drawn in grey, too, since a copy of a
    picture is to look like one.
    """
    data = kernel_walk(call, channel, input_channel, cell)
    if grey is not None:
        given, signed, unsigned = grey
        is_picture = bool((call.output[channel] >= 0).all())
        says = (given, unsigned if is_picture else signed)
        data = {**data, "grey": True, "greyMap": is_picture, "says": says}
    show("walk", key, {**data, "colours": colormap})
