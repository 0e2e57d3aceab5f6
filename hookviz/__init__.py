"""HookViz: every channel of every conv layer of a CNN, in real numbers.

>>> import hookviz
>>> model = hookviz.load_model("shapesnet")
>>> cap = hookviz.capture(model, "photo.jpg")
>>> grid = hookviz.make_grid(cap["stem.first.conv"])
>>> grid.png()  # doctest: +SKIP
"""

from hookviz.catalog import list_models
from hookviz.engine import capture, prepare
from hookviz.errors import (
    HookVizError,
    ImageError,
    ModelError,
    SettingError,
    UnknownLayerError,
    UnknownModelError,
    UnknownNameError,
    WeightsError,
)
from hookviz.images import read as read_image
from hookviz.loading import load_model, wrap
from hookviz.render import Grid, make_grid
from hookviz.survey import list_layers
from hookviz.types import (
    Activation,
    Address,
    Capture,
    Crop,
    InputImage,
    LayerInfo,
    Model,
    ModelInput,
    ModelSpec,
    Preprocess,
)

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Address",
    "Capture",
    "Crop",
    "Grid",
    "HookVizError",
    "ImageError",
    "InputImage",
    "LayerInfo",
    "Model",
    "ModelError",
    "ModelInput",
    "ModelSpec",
    "Preprocess",
    "SettingError",
    "UnknownLayerError",
    "UnknownModelError",
    "UnknownNameError",
    "WeightsError",
    "__version__",
    "capture",
    "list_layers",
    "list_models",
    "load_model",
    "make_grid",
    "prepare",
    "read_image",
    "wrap",
]
