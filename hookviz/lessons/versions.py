"""Correlate a layer's channels with the class's score over many versions of one image.

So "this channel answers to the class" becomes a number: the correlation, over the versions, of the
channel's mean behind its ReLU and the score of the class. It says what goes together, and not what
causes what.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.engine import capture
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.lessons.layers import activation_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.picture_changes import brightened, noisy, shifted, turned
from hookviz.lessons.scores import own_scores
from hookviz.types import ActivationKey, LayerInfo, Pixels

Floats = NDArray[np.float64]

_FADED = (0.85, 0.7, 0.55, 0.4, 0.25, 0.1)  # what is left of the picture, the rest is grey
_TURNED = (-60, -30, -15, 15, 30, 60)  # degrees
_SHIFTED = (-24, -12, 12, 24)  # pixels
_LIGHT = (40, 70, 130)  # hundredths
_NOISE = (16, 32, 64)  # levels of 255
_GREY = 128


@dataclass(frozen=True, eq=False, slots=True)
class Versions:
    """Class scores and channel means of every version; the first is the image as it is.

    Attributes:
        scores: of the likeliest class of the image as it is, ``(N,)``.
        means: of each channel behind its ReLU, ``(N, C)``.
    """

    scores: Floats = field(repr=False)
    means: Floats = field(repr=False)

    @property
    def correlations(self) -> Floats:
        """Pearson's correlation of each channel's mean with the score, ``(C,)``; 0 for none."""
        means, scores = self.means - self.means.mean(0), self.scores - self.scores.mean()
        sizes = np.sqrt(np.square(means).sum(0) * np.square(scores).sum())
        correlations: Floats = np.where(
            sizes > 0, means.T @ scores / np.where(sizes > 0, sizes, 1), 0.0
        )
        return correlations


def pictures_of(picture: Pixels) -> list[Pixels]:
    """Return the versions of a picture, RGB uint8 ``(H, W, 3)``, it itself first."""
    faded = [
        np.rint(_GREY + share * (picture.astype(np.float64) - _GREY)).astype(np.uint8)
        for share in _FADED
    ]
    return [
        picture,
        *faded,
        *(turned(picture, degrees) for degrees in _TURNED),
        *(shifted(picture, right, 0) for right in _SHIFTED),
        *(brightened(picture, percent) for percent in _LIGHT),
        *(noisy(picture, levels) for levels in _NOISE),
    ]


def versions(scene: LessonScene, layer: LayerInfo) -> Versions:
    """Compute class scores and a conv layer's channel means of every version of the scene's image.

    Raises:
        HookVizError: the model makes its input by a function of its own.
    """
    nbytes = 8 * 32 * (layer.output_shape[0] + 1)
    return scene.cached(("versions", layer.name), lambda: _versions(scene, layer), nbytes)


def _versions(scene: LessonScene, layer: LayerInfo) -> Versions:
    _, picture = check_repaints(scene.model, scene.model_input)
    target = own_scores(scene).best
    address = activation_of(scene, layer)
    scores, means = [], []
    for version in pictures_of(picture):
        model_input = repainted(scene.model, scene.model_input, version)
        recorded = capture(scene.model, model_input, ActivationKey.read(address).layer)
        assert recorded.logits is not None  # the scene's own image has class scores
        scores.append(float(recorded.logits[target]))
        means.append(recorded[address].values.double().flatten(1).mean(1).numpy())
    return Versions(np.array(scores), np.stack(means))
