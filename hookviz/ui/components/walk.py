"""Show the kernel's walk over one of its inputs, to play or to step from the chosen cell."""

from collections.abc import Callable

from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.explorer.kernel import kernel_walk
from hookviz.ui.components.files import show

_SECONDS = 10  # in which a map is filled


def walk(
    call: LayerCall,
    channel: int,
    input_channel: int,
    cell: tuple[int, int],
    colormap: str,
    *,
    key: str = "walk",
    grey: tuple[str, str, str] | None = None,
    empty: bool = False,
    blank: bool = False,
    above: int | None = None,
    on_reach: Callable[[tuple[int, int]], None] = lambda _cell: None,
) -> None:
    """Show how `channel` comes from the layer's input channel number `input_channel`.

    It starts at `cell`, (row, column) of the output; `colormap` is a diverging one. An input that
    is a grey picture, 0 black to 1 white, is drawn as one where `grey` says what it is, what a map
    with values below zero is, and what one without: that is drawn in grey, too, since a copy of a
    picture is to look like one. The map is filled in `_SECONDS`, slowly at first.

    Args:
        call: what is walked over.
        channel: of the output.
        input_channel: of the input.
        cell: where the walk stands at first.
        colormap: a diverging one.
        key: of the component.
        grey: what is said of a grey picture, see above.
        empty: whether no cell is made yet.
        blank: whether cells that are still to come are not seen.
        above: pixels that something else takes above the maps, which are the larger then; None for
            a whole editor, above which they are small.
        on_reach: gets the cell to which a person has gone.
    """
    rows, columns = call.output.shape[1:]

    def reached(sent: object) -> None:
        match sent:
            case [int(row), int(column)] if 0 <= row < rows and 0 <= column < columns:
                on_reach((row, column))

    data = kernel_walk(call, channel, input_channel, cell)
    if grey is not None:
        given, signed, unsigned = grey
        is_picture = bool((call.output[channel] >= 0).all())
        says = (given, unsigned if is_picture else signed)
        data = {
            **data,
            "grey": True,
            "greyMap": is_picture,
            "says": says,
            "seconds": _SECONDS,
            "empty": empty,
            "blank": blank,
            "above": above,
        }
    show("walk", key, {**data, "colours": colormap}, reached=reached)
