"""A small picture of each layer: its mean activation over all channels."""

import numpy as np

from hookviz.capturing import engine
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import Resampling, resize
from hookviz.types import Model, ModelInput
from hookviz.ui.components.navigator import Previews, previews_of
from hookviz.ui.serving.turns import turn

_SIDE = 32  # pixels


def previews(
    model: Model, model_input: ModelInput, cache: ByteCache, *, of_all: bool
) -> Previews | None:
    """The mean of each conv layer's first maps, or `of_all` that puts out maps, each on its scale.

    None where the session's cache can't hold all layers: they would be computed on every click.
    """
    key = ("previews", model.name, model.digest, model_input.digest, of_all)
    known: Previews | None = cache.get(key)
    if known is not None:
        return known
    trace = input_trace(model, model_input)
    names = [layer.name for layer in (trace.maps if of_all else trace.convs)]
    if sum(trace.nbytes[name] for name in names) > cache.limit // 2:
        return previews(model, model_input, cache, of_all=False) if of_all else None
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
    made = previews_of(grid, names)
    cache.put(key, made, len(made.picture))
    return made


def _small(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The mean over all but the last two dimensions, brought to a small square."""
    if values.ndim < 2:
        return np.zeros((_SIDE, _SIDE), np.float32)
    mean = values.reshape(-1, *values.shape[-2:]).mean(0, dtype=np.float32)
    mean = np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0)
    method = Resampling.BOX if min(mean.shape) > _SIDE else Resampling.NEAREST
    return resize(mean, (_SIDE, _SIDE), method)
