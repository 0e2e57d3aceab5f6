"""Make vectors of the images of a shard, wherever an engine has it done."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine as capturing
from hookviz.capturing import inputs
from hookviz.capturing.feature_vectors import vector
from hookviz.capturing.image_shards import ImageShard, outcome_of_each
from hookviz.capturing.last_maps import last_maps
from hookviz.capturing.layer_trace import layer_trace
from hookviz.engines.engine import Needs, ReportImages
from hookviz.errors import HookVizError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say
from hookviz.types import Model


@dataclass(frozen=True)
class VectorWork:
    """Worker that makes a vector of each image and layer, or says why an image has none.

    Attributes:
        model: from `load_model` or `wrap`.
        layers: whose output; empty where no image has told which layer is the last.
        pool: one of `POOLS`.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        needs: what it needs where it runs.
    """

    model: Model
    layers: tuple[str, ...]
    pool: str
    size: int | None
    whole: bool = False
    needs: Needs = field(default_factory=Needs)

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(
        self, shard: ImageShard, report: ReportImages
    ) -> dict[str, tuple[NDArray[np.float32], ...] | HookVizError]:
        """Return each image's vectors, one a layer, or why there are none, by its name."""
        return outcome_of_each(shard, report, self._vectors)

    def _vectors(
        self, _place: int, image: Any, reporter: ProgressReporter
    ) -> tuple[NDArray[np.float32], ...]:
        model_input = inputs.prepare(self.model, image, size=self.size, whole=self.whole)
        shape = model_input.tensor.shape
        layers = self.layers or (usual_layer(self.model, tuple(shape[1:])),)
        captured = capturing.capture(
            self.model, model_input, layers, logits=False, progress=reporter.within
        )
        return tuple(vector(captured.calls(layer)[0], self.pool) for layer in layers)


def usual_layer(model: Model, shape: tuple[int, ...]) -> str:
    """Return the layer whose output stands for an input ``(C, H, W)`` where none is chosen.

    That is the last module that puts out maps, such as ``layer4.1`` of a ResNet, whose mean is what
    the classes are read off; without such, the last conv layer or the last layer.
    """
    trace = layer_trace(model, shape)
    layers = trace.convs or trace.layers
    last = last_maps(trace, {layer.name for layer in trace.every})
    if last is not None:
        return last
    if not layers:
        raise HookVizError(
            say("{model} has no layer whose output could be a vector.", model=model.title)
        )
    return layers[-1].name
