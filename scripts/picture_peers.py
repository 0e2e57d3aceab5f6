"""Make pictures of units by other libraries, with equal steps, size and network.

Neither library is among the project's requirements, as one of them needs an old kornia. `make
bench` has them beside it, of ``requirements-peers.txt``::

    make .venv/peers
    PYTHONPATH=.venv/peers/packages python -m scripts.bench_pictures
"""

import contextlib
import copy
import importlib
import importlib.metadata
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor, nn

from hookviz.images.samples import samples

SIDE = 128
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_TEMPLATE_SIDE = 224
_HORAMA_RANGE = (-2.5, 2.5)  # its default, which the objective takes for black and white
_WHOLE = (0.9, 1.0)  # of the picture's side: crops of 1 to 1.1

Maker = Callable[[str, int, int], Tensor]
"""Of a layer, a channel and a number of steps: a picture, ``(3, SIDE, SIDE)`` in 0…1."""


class _EnoughError(Exception):
    """Raised once the layer was seen, since the rest of the network adds nothing."""


def plain_copy(network: nn.Module) -> nn.Module:
    """Copy the network with no layer that writes in place, which would change what a hook holds."""
    copied = copy.deepcopy(network).eval().requires_grad_(False)
    for module in copied.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010 - no attribute of every module
    return copied


def mean_of_channel(network: nn.Module, layer: str, channel: int, pictures: Tensor) -> Tensor:
    """Return the channel's mean (), by a plain hook, of pictures of 0…1, ``(N, 3, H, W)``.

    This is what all pictures are judged by, HookViz's too.
    """
    seen: list[Tensor] = []

    def see(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        seen.append(output)
        raise _EnoughError

    mean, std = (torch.tensor(each).view(1, 3, 1, 1) for each in (_MEAN, _STD))
    handle = network.get_submodule(layer).register_forward_hook(see)
    try:
        with contextlib.suppress(_EnoughError):
            network((pictures - mean) / std)
    finally:
        handle.remove()
    return seen[0][:, channel].mean()


def lucent_maker(network: nn.Module) -> Maker:
    """Make pictures by lucent with its defaults, but for the network's input size: the picture's.

    Raises:
        ImportError: it is not installed.
    """
    render = importlib.import_module("lucent.optvis.render")
    objectives = importlib.import_module("lucent.optvis.objectives")
    param = importlib.import_module("lucent.optvis.param")

    def make(layer: str, channel: int, steps: int) -> Tensor:
        objective = objectives.channel(layer.replace(".", "_"), channel)
        np.random.seed(0)
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pictures = render.render_vis(
                network,
                objective,
                lambda: param.image(SIDE),
                thresholds=(steps,),
                fixed_image_size=SIDE,
                progress=False,
                show_image=False,
            )
        return torch.from_numpy(pictures[-1][0]).movedim(-1, 0).float()

    return make


def horama_maker(network: nn.Module, kind: str, crops: int = 2) -> Maker:
    """Make pictures by Horama's ``fourier`` or ``maco`` with its learning rate, noise and range.

    Its crops are of about the picture's size here; its default, a quarter of 1280 pixels, leaves
    32 of 128.

    Args:
        network: whose.
        kind: the name of its function.
        crops: of the picture in every step. Its default is 6; with fewer than 2 it fails.

    Raises:
        ImportError: it is not installed.
    """
    function = getattr(importlib.import_module("horama"), kind)
    low, high = _HORAMA_RANGE
    template = spectrum_of_photographs() if kind == "maco" else None

    def make(layer: str, channel: int, steps: int) -> Tensor:
        def objective(images: Tensor) -> Tensor:
            return mean_of_channel(network, layer, channel, (images - low) / (high - low))

        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if template is not None:
                np.save(Path(folder) / "spectrum_decorrelated.npy", template)
            with contextlib.redirect_stderr(io.StringIO()):
                picture, _ = function(
                    objective,
                    total_steps=steps,
                    image_size=SIDE,
                    model_input_size=SIDE,
                    crops_per_iteration=crops,
                    device="cpu",
                    box_size=_WHOLE,
                )
        levels: Tensor = ((picture.detach() - low) / (high - low)).clamp(0, 1)
        return levels

    return make


def spectrum_of_photographs() -> NDArray[np.float32]:
    """Return the samples' mean magnitudes for Horama's MACO, ``(3, S, S / 2 + 1)``.

    Its own, of ImageNet, is downloaded by it, from an address that is not everywhere reached.
    """
    common = importlib.import_module("horama.common")
    inverse = np.linalg.inv(common.get_color_correlation_svd_sqrt("cpu").numpy())
    magnitudes = []
    for sample in samples():
        if sample.kind == "photo":
            with Image.open(sample.path) as image:
                square = ImageOps.fit(image.convert("RGB"), (_TEMPLATE_SIDE,) * 2)
            levels = np.clip(np.asarray(square, np.float64) / 255, 0.02, 0.98)
            plain = np.log(levels / (1 - levels)) @ inverse
            magnitudes.append(np.abs(np.fft.rfft2(plain.transpose(2, 0, 1))))
    template: NDArray[np.float32] = np.mean(magnitudes, 0).astype(np.float32)
    return template


def version_of(package: str) -> str:
    """Return a package's installed version.

    Raises:
        ImportError: it is not installed.
    """
    return importlib.metadata.version(package)
