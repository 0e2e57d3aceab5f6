"""What a lens's test says of its script: parameters to run it with, and how exact it has to be.

A lens's test has ``SCRIPTS``, a tuple of `ScriptCase`, and ``NOT_IN_SCRIPT`` where the script
leaves out some of the lens's values; ``test_lens_script.py`` runs and compares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SHAPESNET, SQUEEZENET, RESNET, CONVNEXT = (
    *(("shapesnet",), ("squeezenet1_1",)),
    *(("resnet18",), ("convnext_tiny",)),
)
PVT = ("timm/pvt_v2_b0",)
"""Of patches at four sizes, whose tokens are maps for an input of any size."""
SHAPESVIT = ("shapesvit",)
"""Of tokens behind a class token."""
NETWORKS = (*SHAPESNET, *SQUEEZENET, *RESNET)
"""Weights in the box; a checkpoint, ReLUs in place; those and shortcuts, layers that run twice.

ConvNeXt has blocks that hold weights, and channels last.
"""

FEW: dict[str, Any] = {"steps": 6, "side": 48}
"""Parameters for pictures that are optimized, few enough for rounding to stay small."""
LEVELS = 3
"""How far such pictures may be off: channels come last there, and not in the script."""


@dataclass(frozen=True)
class ScriptCase:
    """A lens with parameters, on networks; how far its script may be off, by the largest number.

    Of pictures, which have levels of 0 to 255, it may be `levels` off.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    networks: tuple[str, ...] = NETWORKS
    rounding: float = 0
    levels: int = 0
