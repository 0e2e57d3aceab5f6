"""Write what `record` sees to TensorBoard or Weights & Biases, by their own clients.

Neither is imported here: what a person gives is told by what it has.
"""

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from hookviz.drawing.grid import make_grid
from hookviz.errors import SettingError, shorten
from hookviz.hooking.layer_warnings import numbers
from hookviz.training.training_log import MEASURES, TrainingRow

Histograms = Mapping[str, Tensor]
"""Numbers by name, such as ``conv1/gradient``, of any shape."""

Maps = Mapping[str, Tensor]
"""What layers put out for the first input of a step, ``(C, H, W)``, by the layer's name."""

Tracker = Callable[[int, Sequence[TrainingRow], Histograms, Maps], None]
"""Takes a step's number, its rows, and what is drawn of it as histograms and grids."""


def tracker_of(client: Any) -> Tracker:
    """Return what writes a step's numbers to a client of a tracker.

    Args:
        client: a ``torch.utils.tensorboard.SummaryWriter`` or a run of Weights & Biases, what
            ``wandb.init`` gives.

    Raises:
        SettingError: it is neither.
    """
    if all(hasattr(client, name) for name in ("add_scalar", "add_histogram", "add_image")):
        return _tensorboard(client)
    if type(client).__module__.partition(".")[0] == "wandb" and hasattr(client, "log"):
        return _wandb(client)
    raise SettingError(
        f"to={shorten(repr(client))} is neither a SummaryWriter of TensorBoard nor a run of "
        "Weights & Biases, such as wandb.init() gives."
    )


def scalars(rows: Sequence[TrainingRow]) -> dict[str, float]:
    """Return every number of some rows as ``layer/column``."""
    found = {f"{row.layer}/{name}": getattr(row, name) for row in rows for name in MEASURES}
    return {name: value for name, value in found.items() if value is not None}


def _tensorboard(writer: Any) -> Tracker:
    def write(step: int, rows: Sequence[TrainingRow], histograms: Histograms, maps: Maps) -> None:
        for name, value in scalars(rows).items():
            writer.add_scalar(name, value, step)
        for name, values in histograms.items():
            writer.add_histogram(name, values, step)
        for layer, shown in maps.items():
            writer.add_image(f"{layer}/maps", _picture(shown), step, dataformats="HWC")

    return write


def _wandb(run: Any) -> Tracker:
    def write(step: int, rows: Sequence[TrainingRow], histograms: Histograms, maps: Maps) -> None:
        import wandb  # noqa: PLC0415 - it is there, since the run is

        drawn = {name: wandb.Histogram(values.numpy()) for name, values in histograms.items()}
        grids = {f"{layer}/maps": wandb.Image(_picture(shown)) for layer, shown in maps.items()}
        # The step is a number beside the others: the run's own counts every call of its `log`.
        run.log({**scalars(rows), **drawn, **grids, "hookviz/step": step})

    return write


def _picture(maps: Tensor) -> Any:
    """Return the grid of a layer's channels as RGB, uint8 ``(H, W, 3)``."""
    png = make_grid(maps, scale="layer", width=800).png()
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


class Drawn:
    """Numbers and maps of one step that are drawn, kept until it ends."""

    def __init__(self, pictures: Collection[str]) -> None:
        """Keep maps of the layers named in `pictures`."""
        self._pictures = pictures
        self.histograms: dict[str, Tensor] = {}
        self.maps: dict[str, Tensor] = {}

    def see_numbers(self, name: str, values: Tensor) -> None:
        """Keep a copy of some numbers for a histogram."""
        self.histograms[name] = numbers(values).detach().float().cpu().flatten().clone()

    def see_output(self, layer: str, output: Tensor) -> None:
        """Keep what a layer of `pictures` put out for the first input, where that is maps."""
        if layer in self._pictures and layer not in self.maps and output.ndim == 4:
            self.maps[layer] = output[0].detach().float().cpu().clone()
