"""Slide a kernel whose numbers can be edited over the image in grey."""

from collections.abc import Mapping

from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.kernels import PRESETS, Kernel, kernel_call, output_length
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.lessons.pictures import grey_of
from hookviz.models.derived_models import tensors_of

SIDE = 96
"""Cells on a side that the grey picture has at most, so that each of them can be seen."""
OWN = "layer"
"""What `kernel` is for a kernel that the network has learned."""
SHOWN_SIDE = "side"
"""Among the options how many numbers on a side the shown kernel has; a lesson's file has none."""
EMPTY = "empty"
"""What `map` is where the map is to be filled by playing."""
LARGEST = 7
"""Numbers on a side that can be edited at most."""
EDITS = {
    "yes": ("numbers", "moves"),
    "numbers": ("numbers",),
    "moves": ("moves",),
    "no": (),
}
"""What can be changed by each value of `edit`: a kernel's numbers, and how it moves."""


def own_kernels(scene: LessonScene) -> tuple[str, list[Kernel]]:
    """Return the first conv layer's name, and each of its kernels as it acts on a grey picture.

    In grey all colours of a pixel are the same number, so that a kernel's slices act as their sum.

    Raises:
        HookVizError: it has no such kernels.
    """
    first = scene.trace.convs[0] if scene.trace.convs else None
    weight = None
    if first is not None and first.input_shape[0] == 3 and first.groups == 1:
        weight = tensors_of(scene.model).get(f"{first.name}.weight")
    if (
        first is None
        or weight is None
        or weight.ndim != 4
        or weight.shape[2] != weight.shape[3]
        or weight.shape[2] > LARGEST
    ):
        raise HookVizError(
            say(
                "The first layer of {model} has no kernels of up to {count} numbers on a side that "
                "see colours.",
                model=scene.model.title,
                count=LARGEST,
            )
        )
    summed = weight.detach().float().cpu().sum(1)
    return first.name, [tuple(map(tuple, kernel)) for kernel in summed.tolist()]


def start_of(scene: LessonScene, options: Options) -> Kernel:
    """Return the kernel that the part begins with.

    Raises:
        HookVizError: it is to be the network's own, which has none that could be shown.
    """
    if options["kernel"] != OWN:
        return PRESETS[options["kernel"]]
    _, kernels = own_kernels(scene)
    return kernels[min(int(options["channel"]), len(kernels) - 1)]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    grey = grey_of(scene, SIDE)
    kernel = start_of(scene, options)
    stride, padding = int(options["stride"]), int(options["padding"])
    output = kernel_call(grey, kernel, stride, padding).output[0]
    rows, columns = grey.shape
    side = int(options.get(SHOWN_SIDE, len(kernel)))
    facts: dict[str, Fact] = {
        "height": rows,
        "width": columns,
        "side": side,
        "weights": side * side,
        "stride": stride,
        "padding": padding,
        "rows": int(output.shape[0]),
        "columns": int(output.shape[1]),
        "lowest": float(output.min()),
        "highest": float(output.max()),
        "sum": float(sum(map(sum, kernel))),
    }
    for row, weights in enumerate(kernel, 1):
        facts |= {f"weight_{row}_{column}": weight for column, weight in enumerate(weights, 1)}
    for other in (1, 2):
        facts[f"rows_at_stride_{other}"] = output_length(rows, side, other, padding)
        facts[f"columns_at_stride_{other}"] = output_length(columns, side, other, padding)
    facts["rows_without_padding"] = output_length(rows, side, stride, 0)
    facts["columns_without_padding"] = output_length(columns, side, stride, 0)
    return facts


def offered(options: Options) -> tuple[str, ...]:
    """Return the names of the kernels to begin from, in the order of the lesson's file."""
    named = [name.strip() for name in options["offer"].split(",")]
    return tuple(named) if options["offer"] else (*PRESETS, OWN)


def _check_offer(value: str) -> str:
    named = [name.strip() for name in value.split(",")] if value else []
    return next(filter(None, map(choice((*PRESETS, OWN)), named)), "")


PART = Part(
    "kernel",
    mark(
        "A kernel on the image in grey: its numbers can be edited, with stride and padding; the "
        "map that it makes, and the products behind any cell of it."
    ),
    options=(
        Option(
            "kernel",
            "vertical",
            mark(
                "vertical, horizontal, diagonal, outline, blur, sharpen, copy, or layer for one "
                "of the network's own."
            ),
            choice((*PRESETS, OWN)),
        ),
        Option(
            "channel", "0", mark("Which of the network's own kernels."), whole_number(0, 100_000)
        ),
        Option(
            "stride", "1", mark("Cells that it moves at each step, 1 to 4."), whole_number(1, 4)
        ),
        Option(
            "map",
            "whole",
            mark("Whether the map is there at first: whole, or empty, to be filled."),
            choice(("whole", EMPTY)),
        ),
        Option(
            "offer",
            "",
            mark("Which kernels to begin from are offered, with commas; without, all."),
            _check_offer,
        ),
        Option(
            "edit",
            "yes",
            mark(
                "Whether numbers, stride and padding can be changed (yes), the numbers alone "
                "(numbers), stride and padding alone (moves), or kernels only chosen (no)."
            ),
            choice(tuple(EDITS)),
        ),
        Option("padding", "0", mark("Cells of zero around the image, 0 to 3."), whole_number(0, 3)),
    ),
    facts=_facts,
    link=lambda scene, _options: {"layer": scene.trace.convs[0].name} if scene.trace.convs else {},
)
