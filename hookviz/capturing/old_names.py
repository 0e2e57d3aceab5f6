"""Functions whose names go in HookViz 2.0: `capture` and `stream` do what they did."""

from collections.abc import Generator
from typing import Any

from torch import nn

from hookviz.capturing.engine import capture
from hookviz.capturing.streaming import stream
from hookviz.deprecated import warn_renamed
from hookviz.types import Capture, Model


def capture_batch(
    model: Model | nn.Module, images: Any, *args: Any, **kwargs: Any
) -> tuple[Capture, ...]:
    """Capture several images in one pass: the old name of `capture` with a list of them."""
    warn_renamed("hookviz.capture_batch(…)", "hookviz.capture(…)")
    single = images.get("pixel_values", [images]) if isinstance(images, dict) else images
    return tuple(capture(model, list(single), *args, **kwargs))


def capture_each(
    model: Model | nn.Module, images: Any, *args: Any, **kwargs: Any
) -> Generator[tuple[str, Any], None, None]:
    """Capture each of many images, one a pass: the old name of `stream` with ``batch_size=1``."""
    warn_renamed("hookviz.capture_each(…)", "hookviz.stream(…)")
    pairs: Generator[tuple[str, Any], None, None]
    pairs = stream(model, images, *args, batch_size=1, **kwargs)
    return pairs
