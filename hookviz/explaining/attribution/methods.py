"""Formulas of attribution: class activation maps, integrated gradients, occlusion, baselines.

- Class activation maps combine a layer's channels. Grad-CAM, Grad-CAM++, LayerCAM and Eigen-CAM
  work on plain arrays; Score-CAM tries each channel as a mask on the input, without gradients.
- Integrated gradients attribute a target's change from a baseline to the input to each pixel
  (Sundararajan, Taly and Yan, "Axiomatic Attribution for Deep Networks", 2017).
- Occlusion measures how a target falls while boxes of the input are hidden one by one (Zeiler and
  Fergus, "Visualizing and Understanding Convolutional Networks", 2014, section 4.2).
- A baseline stands for missing input. No input is without information, so the choice of a baseline
  decides the attribution (Sturmfels, Lundberg and Lee, "Visualizing the Impact of Feature
  Attribution Baselines", 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torchvision.transforms import functional as F  # its name everywhere

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import SettingError
from hookviz.explaining.attribution.batched_passes import iter_target_values
from hookviz.explaining.attribution.gradients import Numbers
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.channels_last import faster_model, lay_out, rounding_note
from hookviz.language.saying import mark, say
from hookviz.types import Model, ModelInput, Preprocess, Progress, ignore
from hookviz.wording import times


def grad_cam(activation: Numbers, gradient: Numbers) -> tuple[Numbers, Numbers]:
    """Compute Grad-CAM before its ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    ``Σ_k α_k A_k`` with ``α_k`` the mean of ∂score/∂A_k over the map (Selvaraju et al., 2017,
    equations 1 and 2). Both arguments are ``(C, H, W)``.
    """
    weights = gradient.mean((1, 2))
    return np.einsum("c,chw->hw", weights, activation), weights


def grad_cam_plus_plus(activation: Numbers, gradient: Numbers) -> tuple[Numbers, Numbers]:
    """Compute Grad-CAM++ before its last ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    ``w_k = Σ_ij α_kij max(0, g_kij)`` with ``α = g² / (2 g² + g³ Σ_ab A_kab + ε)``, g being
    ∂score/∂A (Chattopadhay et al., 2018, equations 5 and 19; ε is not theirs). Both
    arguments are ``(C, H, W)``.
    """
    safe = 1e-6  # keeps it from dividing by zero; the number that pytorch-grad-cam takes
    squares, total = gradient**2, activation.sum((1, 2), keepdims=True)
    shares = squares / (2 * squares + total * squares * gradient + safe)
    weights = (np.maximum(gradient, 0) * shares).sum((1, 2))
    return np.einsum("c,chw->hw", weights, activation), weights


def layer_cam(activation: Numbers, gradient: Numbers) -> Numbers:
    """Compute LayerCAM before its ReLU, ``(H, W)``: every cell has a weight of its own.

    ``Σ_k max(0, ∂score/∂A_k) · A_k`` (Jiang et al., 2021, equations 5 and 6). Both arguments are
    ``(C, H, W)``.
    """
    cam: Numbers = np.einsum("chw,chw->hw", np.maximum(gradient, 0), activation)
    return cam


def eigen_cam(activation: Numbers) -> tuple[Numbers, Numbers]:
    """Compute Eigen-CAM, ``(H, W)``, and the channels' share in it, ``(C,)`` of length 1.

    The cells, each with C numbers, laid along the direction in which they differ most: the first
    right singular vector of the ``(H·W, C)`` matrix (Muhammad and Yeasin, 2020), every channel's
    mean taken off first, as pytorch-grad-cam does. A singular vector has no sign; here the cell
    that is farthest from zero is positive (Chung and Ying, 2025, equation 13).
    """
    cells = np.nan_to_num(activation).reshape(len(activation), -1).T
    cells = cells - cells.mean(0)
    direction = np.linalg.svd(cells, full_matrices=False)[2][0]
    along = cells @ direction
    sign = -1 if -along.min() > along.max() else 1
    return (sign * along).reshape(activation.shape[1:]), sign * direction


def score_cam(
    model: Model,
    model_input: ModelInput,
    activation: Numbers,
    *,
    target: int,
    top: int,
    progress: Progress = ignore,
) -> tuple[Numbers, Numbers]:
    """Compute Score-CAM before its ReLU, ``(H, W)``, and the channels' weights, ``(C,)``.

    Every channel, enlarged to the input's size and brought to 0…1, is a mask on the input. The
    weights are the softmax over the class's scores of the masked inputs (Wang et al., 2020,
    algorithm 1; the score of a baseline, which they take off, cancels in the softmax). Only the
    `top` channels with the largest mean |A| are tried; the others have weight 0.

    `activation` is A, the output of the layer, ``(C, H, W)``, and `target` the class.

    Raises:
        ModelError: the network can't take a masked input.
    """
    channels = strongest(activation, top)

    def masked(start: int, stop: int) -> Tensor:
        return masked_by(activation[channels[start:stop]], model_input.tensor)

    batches = iter_target_values(
        model,
        model_input,
        AttributionTarget(target),
        masked,
        count=len(channels),
        progress=progress,
    )
    scores = torch.cat([batch.values for batch in batches])
    return weighed_by(scores, channels, activation)


def strongest(activation: Numbers, top: int) -> NDArray[np.intp]:
    """Return the numbers of the `top` channels with the largest mean |A|, in ascending order."""
    strength = np.abs(activation).mean((1, 2))
    return np.sort(np.argsort(-strength, kind="stable")[:top])


def masked_by(maps: Numbers, image: Tensor) -> Tensor:
    """Multiply the image by each map, enlarged to its size and brought to 0…1: ``(N, C, H, W)``."""
    masks = torch.from_numpy(maps)[:, None]
    masks = nn.functional.interpolate(masks, image.shape[2:], mode="bilinear", align_corners=True)
    low, high = masks.amin((2, 3), keepdim=True), masks.amax((2, 3), keepdim=True)
    return image * ((masks - low) / (high - low + 1e-8))


def weighed_by(
    scores: Tensor, channels: NDArray[np.intp], activation: Numbers
) -> tuple[Numbers, Numbers]:
    """Weigh `channels` by the softmax of their scores, the others by 0 (Wang et al., 2020)."""
    weights = np.zeros(len(activation), np.float32)
    weights[channels] = scores.softmax(0).numpy()
    return np.einsum("c,chw->hw", weights, activation), weights


Floats = NDArray[np.float64]
NEAR = 0.01  # of the difference, below which the sum is taken to be complete
_STEPS_MULTIPLE = 10  # the advised number of steps is rounded up to a multiple of these
_STEPS_MARGIN = 1.25  # times the number for an error that falls as 1 / steps


@dataclass(frozen=True, eq=False, slots=True)
class IntegratedGradients:
    """Attribution of a target to every number of an input, by integrated gradients.

    Attributes:
        attribution: float64 ``(C, H, W)``; its sum is ``value − start``, but for the error.
        value: F(x), the target of the input.
        start: F(x′), that of the baseline.
        steps: at how many points of the path the gradient was taken.
    """

    attribution: Floats = field(repr=False)
    value: float
    start: float
    steps: int

    @property
    def difference(self) -> float:
        """F(x) − F(x′), which the attributions should add up to (completeness)."""
        return self.value - self.start

    @property
    def error(self) -> float:
        """How far the attributions are off: ``|Σ attribution − difference| / |difference|``."""
        return completeness_error(self.attribution, self.difference)

    @property
    def is_complete(self) -> bool:
        """Whether the error is within 1 %."""
        return self.error <= NEAR

    @property
    def enough_steps(self) -> int | None:
        """Number of steps that should do for 1 %; None where no number would.

        The gradient of a network of ReLUs jumps along the path, so that no rule's error falls
        faster than about 1 / steps.
        """
        if not np.isfinite(self.error):
            return None
        wanted = _STEPS_MARGIN * self.steps * self.error / NEAR
        return max(self.steps, _STEPS_MULTIPLE * int(-(-wanted // _STEPS_MULTIPLE)))


def gauss_legendre(steps: int) -> tuple[Floats, Floats]:
    """Return the points of the Gauss-Legendre rule on 0…1 and their weights, ``(steps,)`` each."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (points + 1) / 2, weights / 2


def completeness_error(attribution: Floats, difference: float) -> float:
    """Return by which share of the difference the sum of the attributions is off."""
    off = abs(float(attribution.sum()) - difference)
    if off == 0:
        return 0.0
    return off / abs(difference) if difference else float("inf")


def integrated_gradients(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    baseline: Tensor,
    *,
    steps: int,
    progress: Progress,
) -> IntegratedGradients:
    """Integrate the target's gradients along the straight path from the baseline to the input.

    ``(x − x′) · Σ_i w_i ∂F/∂x (x′ + α_i (x − x′))`` with the points α and the weights w of the
    Gauss-Legendre rule on 0…1, as captum's default has it. Equal steps come out worse: what the
    network computes changes fastest near the baseline, where this rule has more points.

    Args:
        model: the model.
        model_input: the input x, ``(1, C, H, W)``.
        target: F.
        baseline: x′, ``(1, C, H, W)``.
        steps: how many points.
        progress: called with the share done; what it raises ends the run.

    Raises:
        HookVizError: no gradient gets from the target to the input; or as `iter_target_values`.
    """
    image = model_input.tensor
    points, weights = gauss_legendre(steps)
    alphas = torch.from_numpy(points).to(image.dtype).view(-1, *[1] * (image.ndim - 1))
    path = image - baseline

    def on_path(start: int, stop: int) -> Tensor:
        return baseline + alphas[start:stop] * path

    total = torch.zeros(image.shape[1:], dtype=torch.float64)
    ends = steps / (steps + 1)  # the share of the time before the values at both ends
    batches = iter_target_values(
        model,
        model_input,
        target,
        on_path,
        count=steps,
        gradients=True,
        progress=lambda share: progress(share * ends),
    )
    for batch in batches:
        shares = torch.from_numpy(weights[batch.start : batch.start + len(batch.values)])
        total += torch.einsum("n,n...->...", shares, batch.gradients.double())
    both = torch.cat([image, baseline])
    values = iter_target_values(
        model,
        model_input,
        target,
        lambda start, stop: both[start:stop],
        count=2,
        progress=lambda share: progress(ends + share * (1 - ends)),
    )
    value, at_baseline = torch.cat([batch.values for batch in values]).tolist()
    return IntegratedGradients((total * path[0].double()).numpy(), value, at_baseline, steps)


@dataclass(frozen=True)
class Windows:
    """Sliding boxes over an input: squares over an image, a stretch of sound, a block of a volume.

    Attributes:
        shape: of the input without its channels: height and width of an image in pixels.
        sides: of a box along each axis, at most those of the input.
        strides: from one to the next, at most `sides`, so that no pixel is left out.
    """

    shape: tuple[int, ...]
    sides: tuple[int, ...]
    strides: tuple[int, ...]

    @cached_property
    def boxes(self) -> list[tuple[slice, ...]]:
        """The boxes, row by row."""
        return box_slices(self.shape, self.sides, self.strides)

    @property
    def grid(self) -> tuple[int, ...]:
        """Number of positions along each axis: down and across."""
        return tuple(
            len({box[axis].start for box in self.boxes}) for axis in range(len(self.shape))
        )


def box_slices(
    shape: Sequence[int], sides: Sequence[int], strides: Sequence[int]
) -> list[tuple[slice, ...]]:
    """Return the rows and the columns of every box, row by row; so too of one axis or three.

    The last box of an axis is cut off where it reaches past the input.
    """
    axes = [
        [slice(begin, min(begin + side, size)) for begin in range(0, size - side + stride, stride)]
        for size, side, stride in zip(shape, sides, strides, strict=True)
    ]
    places = np.ndindex(*map(len, axes))
    return [tuple(axis[at] for axis, at in zip(axes, place, strict=True)) for place in places]


def hidden(image: Tensor, box: tuple[slice, ...], baseline: Tensor) -> Tensor:
    """Return a copy of the input with the baseline in place of a box, all channels of it."""
    image, inside = image.clone(), (slice(None), slice(None), *box)
    image[inside] = baseline[inside]
    return image


def over_pixels(drops: Floats, boxes: list[tuple[slice, ...]]) -> Floats:
    """Return for each pixel the mean of the drops of all boxes over it, ``(H, W)``."""
    total, covers = np.zeros((2, *(axis.stop for axis in boxes[-1])))
    for box, drop in zip(boxes, drops.flat, strict=True):
        total[box] += drop
        covers[box] += 1
    mean: Floats = total / covers
    return mean


@dataclass(frozen=True, eq=False, slots=True)
class Occlusion:
    """Drops of a target where a box hides the input.

    Attributes:
        value: the target of the whole input.
        drops: value − the target with the box at each position, float64, of `Windows.grid`.
        map: for each pixel the mean of the drops of all boxes over it, float64 ``(H, W)``.
        how: how its numbers are rounded, in words; empty of plain passes.
    """

    value: float
    drops: Floats = field(repr=False)
    map: Floats = field(repr=False)
    how: str = ""


def occlusion(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    baseline: Tensor,
    *,
    windows: Windows,
    progress: Progress,
) -> Occlusion:
    """Hide a box of the input at every position, and measure how the target falls.

    As in captum's `Occlusion`, all channels of the input are hidden at once. Convolutional networks
    run with their channels last in memory, so the numbers are those of plain passes to rounding
    (see `hookviz.hooking.channels_last`).

    Args:
        model: the model.
        model_input: the input, ``(1, C, H, W)``, or of other axes than H and W.
        target: whose fall is measured.
        baseline: values for the hidden box, of the input's shape.
        windows: where the box stands.
        progress: called with the share done; what it raises ends the run.

    Raises:
        HookVizError: as `iter_target_values` does.
    """
    image = model_input.tensor
    input_trace(model, model_input)  # tells whether a pass does more than compute
    fast = faster_model(model, image)
    if fast is not model:
        image = lay_out(image)

    def inputs(start: int, stop: int) -> Tensor:
        """Make the inputs of these numbers: 0 is the whole one, then a box is hidden."""
        boxes = windows.boxes[max(0, start - 1) : stop - 1]
        whole = [image] if start == 0 else []
        return torch.cat([*whole, *(hidden(image, box, baseline) for box in boxes)])

    count = 1 + len(windows.boxes)
    batches = iter_target_values(fast, model_input, target, inputs, count=count, progress=progress)
    values = torch.cat([batch.values for batch in batches]).numpy()
    drops = (values[0] - values[1:]).reshape(windows.grid)
    return Occlusion(
        float(values[0]), drops, over_pixels(drops, windows.boxes), rounding_note(fast)
    )


BASELINES = (mark("zero"), mark("grey"), mark("black"), mark("blurred"))
"""The kinds of baseline; the first is the default.

- zero: 0 in the network's input, which is the mean colour that the preprocessing takes off.
- grey, black: that colour, brought to the network's input by the preprocessing.
- blurred: the input under a Gaussian, whose deviation is a sixteenth of the shorter side.
"""

LEVELS = {"grey": 0.5, "black": 0.0}
"""Of the baselines that are a colour, the level in each channel of the image, 0…1."""


def baseline_of(model: Model, model_input: ModelInput, kind: str) -> Tensor:
    """Make the baseline of an input, of its shape and type, ``(1, C, H, W)``.

    Raises:
        SettingError: a colour, where it is not known how the network takes in colours; or any but
            zero of an input that is no image.
    """
    image = model_input.tensor
    if kind == "zero":
        return torch.zeros_like(image)
    if image.ndim != 4:
        raise SettingError(
            say(
                "baseline={kind!r} is of images, and {model} takes {shape}. 'zero' works.",
                kind=kind,
                model=model.title,
                shape=times(image.shape[1:]),
            )
        )
    if kind == "blurred":
        return blurred(image)
    steps = model.preprocess
    if not isinstance(steps, Preprocess) or len(steps.mean) != image.shape[1]:
        raise SettingError(
            say(
                "baseline={kind!r} is a colour, and how {model} takes in colours is not "
                "known: it prepares its images with a function of its own. 'zero' and "
                "'blurred' work.",
                kind=kind,
                model=model.title,
            )
        )
    levels = [(LEVELS[kind] - mean) / std for mean, std in zip(steps.mean, steps.std, strict=True)]
    colour = torch.tensor(levels, dtype=image.dtype)
    return colour.view(1, -1, 1, 1).expand_as(image).clone()


def blurred(image: Tensor) -> Tensor:
    """Blur an image, rows and columns one after the other, by a sixteenth of its shorter side."""
    rows, columns = image.shape[2:]
    deviation = min(rows, columns) / 16
    reach = [min(side - 1, round(3 * deviation)) for side in (columns, rows)]  # three deviations
    across = F.gaussian_blur(image, [2 * reach[0] + 1, 1], deviation)
    smooth: Tensor = F.gaussian_blur(across, [1, 2 * reach[1] + 1], deviation)
    return smooth
