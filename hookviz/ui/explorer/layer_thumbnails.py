"""A small picture of each layer: its mean activation over all channels."""

import numpy as np
from PIL import Image

from hookviz.capturing import engine
from hookviz.capturing.cache import ByteCache
from hookviz.capturing.survey import survey_input
from hookviz.drawing.grid import Grid, make_grid
from hookviz.types import Model, ModelInput
from hookviz.ui.serving.turns import turn

_SIDE = 32  # pixels


def previews(model: Model, model_input: ModelInput, cache: ByteCache) -> Grid | None:
    """The mean map of each conv layer's first call, in order of execution, each on its own scale.

    None where the session's cache can't hold all layers: they would be computed on every click.
    """
    key = ("previews", model.name, model.digest, model_input.digest)
    grid: Grid | None = cache.get(key)
    if grid is not None:
        return grid
    surveyed = survey_input(model, model_input)
    names = [layer.name for layer in surveyed.convs]
    if sum(surveyed.nbytes[name] for name in names) > cache.limit // 2:
        return None
    if engine.is_cached(model, model_input, names, cache, logits=False):
        capture = engine.capture(model, model_input, names, logits=False, cache=cache)
    else:
        with turn(model.title, "previews", model=model.name) as run:
            capture = engine.capture(
                model, model_input, names, logits=False, cache=cache, progress=run.within()
            )
    small = np.stack([_small(capture.calls(name)[0].values.numpy()) for name in names])
    grid = make_grid(small, scale="channel", aspect=1.0, width=1000)
    cache.put(key, grid, grid.levels.nbytes)
    return grid


def _small(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """The mean over all but the last two dimensions, brought to a small square."""
    if values.ndim < 2:
        return np.zeros((_SIDE, _SIDE), np.float32)
    mean = values.reshape(-1, *values.shape[-2:]).mean(0, dtype=np.float32)
    mean = np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0)
    method = Image.Resampling.BOX if min(mean.shape) > _SIDE else Image.Resampling.NEAREST
    return np.asarray(Image.fromarray(mean).resize((_SIDE, _SIDE), method))
