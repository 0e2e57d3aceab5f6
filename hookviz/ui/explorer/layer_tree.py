"""Show the tree of layers at the side, with the mean activation of each as a small picture."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from hookviz.capturing import engine
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import Resampling, resize
from hookviz.explaining.receptive_field import receptive_fields
from hookviz.explorer.layer_tree import Previews, previews_of
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui.components.navigator import navigator
from hookviz.ui.explorer.layer_choice import choose_layer
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn

_SIDE = 32  # pixels of a small picture


def show_tree(
    model: Model,
    model_input: ModelInput,
    layers: Sequence[LayerInfo],
    layer: LayerInfo,
    listed: str | None,
) -> None:
    """Show the layers by stage, or by block, `layer` marked.

    `listed` says which list of layers they are, where it is not a lens that offers them. Where
    there are blocks among them, their parts stand in these. It takes a while for a network that is
    seen first.
    """
    fields = receptive_fields(model, tuple(model_input.tensor.shape[1:]))
    with st.container():  # for a wait in the queue, so that the tree stays in one place
        small = _previews(model, model_input, resources.session_cache(), of_all=listed == "maps")
    names = {each.name for each in layers}
    has_blocks = any(name.rpartition(".")[0] in names for name in names)
    navigator(
        model,
        layers,
        fields,
        small,
        chosen=layer.name,
        by_block=has_blocks or listed == "maps",
        on_pick=lambda name: choose_layer(name, names, listed),
    )


def _previews(
    model: Model, model_input: ModelInput, cache: ByteCache, *, of_all: bool
) -> Previews | None:
    """Return the mean of each conv layer's first maps, or `of_all` with maps, each on its scale.

    None where the session's cache can't hold all layers: they would be computed on every click.
    """
    key = ("previews", model.name, model.digest, model_input.digest, of_all)
    cached: Previews | None = cache.get(key)
    if cached is not None:
        return cached
    trace = input_trace(model, model_input)
    names = [layer.name for layer in (trace.maps if of_all else trace.convs)]
    if sum(trace.nbytes[name] for name in names) > cache.limit // 2:
        return _previews(model, model_input, cache, of_all=False) if of_all else None
    if engine.is_cached(model, model_input, names, cache, logits=False):
        capture = engine.capture(model, model_input, names, logits=False, cache=cache)
    else:
        with turn(model.title, "previews", model=model.name) as run:
            capture = engine.capture(
                model, model_input, names, logits=False, cache=cache, progress=run.limit.within()
            )
    first = [str(trace.map_outputs[name][0]) for name in names]
    small = np.stack([_small(capture[address].values.numpy()) for address in first])
    grid = make_grid(small, scale="channel", aspect=1.0)
    pictures = previews_of(grid, names)
    cache.put(key, pictures, len(pictures.picture))
    return pictures


def _small(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return the mean over all but the last two dimensions, resized to a small square."""
    if values.ndim < 2:
        return np.zeros((_SIDE, _SIDE), np.float32)
    mean = values.reshape(-1, *values.shape[-2:]).mean(0, dtype=np.float32)
    mean = np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0)
    method = Resampling.BOX if min(mean.shape) > _SIDE else Resampling.NEAREST
    return resize(mean, (_SIDE, _SIDE), method)
