"""Make a model in whose passes the outputs of some layers are edited."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from hookviz.errors import SettingError, shorten
from hookviz.hooking.edits import as_edit
from hookviz.hooking.selection import Layers, select
from hookviz.language.saying import joined, say
from hookviz.models.wrapping import as_model
from hookviz.types import Model

_MOST_NAMED = 3  # layers in a title


def edited(model: Model | nn.Module, edits: Mapping[Any, Any], *, exclude: Layers = ()) -> Model:
    """Return the model with layers edited in each of its passes; the given one stays as it is.

    So all that takes a model takes edits: captures, lenses, `attention`, `extract_features`,
    `patch`, the explorer. The network is shared, and nobody else's passes over it are edited. A
    function has to return what has the output's shape.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        edits: as of `hookviz.edit`, from layers to a value of `hookviz.edits` or a function of a
            `Call`. They come after those that the model has already.
        exclude: as of `hookviz.edit`.

    Raises:
        UnknownLayerError: no layer has such a name, or is of such a type.
        SettingError: `edits` is no mapping, or has something else than edits.
        ModelError: the model's network is a TorchScript program.

    >>> model = hookviz.load_model("shapesnet")
    >>> edit = {"stage3.first.conv": hookviz.edits.zero(channels=[3, 7])}
    >>> without = hookviz.edited(model, edit)
    >>> cap = hookviz.capture(without, "assets/samples/star.jpg")
    >>> cap["stage3.first.conv"].values[[3, 7]].any()
    tensor(False)
    >>> hookviz.run_lens("grad-cam", without, "assets/samples/star.jpg").values["map"].shape
    (8, 8)
    """
    if not isinstance(edits, Mapping):
        raise SettingError(
            f"edits={shorten(repr(edits))} is no mapping from layers to edits. One is, for "
            'example, {"layer3": hookviz.edits.zero}.'
        )
    model = as_model(model)
    rows = tuple((select(model, layers, exclude), change) for layers, change in edits.items())
    for change in edits.values():
        as_edit(change)  # which refuses what is none
    listed = list(dict.fromkeys(name for names, _ in rows for name in names))
    more = say(", …") if len(listed) > _MOST_NAMED else ""
    title = say(
        "{model} with {layers} edited",
        model=model.title,
        layers=joined(listed[:_MOST_NAMED]) + more,
    )
    return replace(model, title=title, edits=(*model.edits, *rows))
