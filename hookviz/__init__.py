"""HookViz: every channel of every conv layer of a CNN, in real numbers.

>>> import hookviz
>>> model = hookviz.load_model("shapesnet")
>>> cap = hookviz.capture(model, "photo.jpg")
>>> grid = hookviz.make_grid(cap["stem.first.conv"])
>>> grid.png()  # doctest: +SKIP

Each name is imported when it is first used: ``hookviz --help`` and ``hookviz doctor`` need no
torch, and the latter can say so where torch is broken.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookviz.catalog import list_models
    from hookviz.clipping import clip_gradients
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
    from hookviz.features import features as extract_features
    from hookviz.images import read as read_image
    from hookviz.lens import Lens
    from hookviz.lenses import list_lenses, run_lens
    from hookviz.loading import load_model, wrap
    from hookviz.panels import LensResult
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
    from hookviz.ui.exploring import Explorer, explore
    from hookviz.watching import BadTensor, BadTensorError, watch

__version__ = "0.1.0"

__all__ = [
    "Activation",
    "Address",
    "BadTensor",
    "BadTensorError",
    "Capture",
    "Crop",
    "Explorer",
    "Grid",
    "HookVizError",
    "ImageError",
    "InputImage",
    "LayerInfo",
    "Lens",
    "LensResult",
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
    "clip_gradients",
    "explore",
    "extract_features",
    "list_layers",
    "list_lenses",
    "list_models",
    "load_model",
    "make_grid",
    "prepare",
    "read_image",
    "run_lens",
    "watch",
    "wrap",
]

_HOMES = {
    "catalog": ("list_models",),
    "clipping": ("clip_gradients",),
    "engine": ("capture", "prepare"),
    "features": ("extract_features",),
    "images": ("read_image",),
    "lens": ("Lens",),
    "lenses": ("list_lenses", "run_lens"),
    "loading": ("load_model", "wrap"),
    "panels": ("LensResult",),
    "render": ("Grid", "make_grid"),
    "survey": ("list_layers",),
    "ui.exploring": ("Explorer", "explore"),
    "watching": ("BadTensor", "BadTensorError", "watch"),
    "types": (
        *("Activation", "Address", "Capture", "Crop", "InputImage", "LayerInfo"),
        *("Model", "ModelInput", "ModelSpec", "Preprocess"),
    ),
    "errors": tuple(
        name for name in __all__ if name.endswith("Error") and name != "BadTensorError"
    ),
}
_MODULES = {name: module for module, names in _HOMES.items() for name in names}
_OTHER_NAMES = {"extract_features": "features", "read_image": "read"}  # in their own module


if not TYPE_CHECKING:  # a type checker that sees it would believe in every name

    def __getattr__(name: str) -> Any:
        """A public name, from its module."""
        if name not in _MODULES:
            raise AttributeError(f"module 'hookviz' has no attribute {name!r}")
        found = getattr(import_module(f"hookviz.{_MODULES[name]}"), _OTHER_NAMES.get(name, name))
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    """The public names, whether they have been used or not, and what has been imported."""
    return sorted({*globals(), *__all__})
