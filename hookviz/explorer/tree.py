"""Answer with the tree of layers, and the mean activation of each as a small picture."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import Resampling, resize
from hookviz.explorer.layer_tree import Previews, layer_tree, previews_of
from hookviz.explorer.layers import kept_capture, resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View

_SIDE = 32  # pixels of a small picture


def answer_tree(subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report) -> Answer:
    """Return the layers by stage, or in the blocks that they are parts of, with small pictures.

    It takes a while for a network that is seen first.

    Raises:
        HookVizError: the network runs no layer that puts out maps, or the pass can't be run.
    """
    looked = resolve(subject, view)
    layers, of_all = looked.layers, looked.listed == "maps"
    names = {each.name for each in layers}
    has_blocks = any(name.rpartition(".")[0] in names for name in names)
    return Answer(
        layer_tree(
            subject.model,
            layers,
            subject.fields(),
            _previews(subject, of_all=of_all),
            chosen=looked.layer.name,
            by_block=has_blocks or of_all,
        )
    )


def _previews(subject: Subject, *, of_all: bool) -> Previews | None:
    """Return the mean of each conv layer's first maps, or `of_all` with maps, each on its scale.

    Where layers are offered, of those of them that are convolutions.

    None where the cache can't hold all layers: they would be computed at every question.
    """
    model, model_input, cache = subject.model, subject.model_input, subject.cache
    trace, offered = subject.trace, {layer.name for layer in subject.offered}
    listed = (layer.name for layer in (trace.shown if of_all else trace.usual))
    names = [name for name in listed if not offered or name in offered]
    if not names:
        return None
    key = ("previews", *subject.key, *names)
    cached: Previews | None = cache.get(key)
    if cached is not None:
        return cached
    if sum(trace.nbytes[name] for name in names) > cache.limit // 2:
        return _previews(subject, of_all=False) if of_all else None
    capture = kept_capture(subject, names, logits=False)
    if capture is None:
        with subject.take_turn(model.title, "previews", "") as run:
            capture = engine.capture(
                model, model_input, names, logits=False, cache=cache, progress=run.limit.within()
            )
    first = [str(trace.shown_outputs[name][0]) for name in names]
    small = np.stack([_small(capture[address].values.numpy()) for address in first])
    pictures = previews_of(make_grid(small, scale="channel", aspect=1.0), names)
    cache.put(key, pictures, len(pictures.picture))
    return pictures


def _small(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean over all but the last two dimensions, resized to a small square."""
    if values.ndim < 2:
        return np.zeros((_SIDE, _SIDE), np.float32)
    mean = values.reshape(-1, *values.shape[-2:]).mean(0, dtype=np.float32)
    mean = np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0)
    method = Resampling.BOX if min(mean.shape) > _SIDE else Resampling.NEAREST
    return resize(mean, (_SIDE, _SIDE), method)
