"""Every `HOOKVIZ_*` environment variable, typed, checked and documented in one place."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from hookviz.errors import SettingError, UnknownNameError

MEGABYTE = 1024 * 1024

_PACKAGE = Path(__file__).resolve().parent
ASSETS = next(
    folder for folder in (_PACKAGE / "assets", _PACKAGE.parent / "assets") if folder.is_dir()
)
"""Weights and samples that ship with HookViz: in the wheel, or beside the package in a checkout."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What whoever starts HookViz can choose; each is read from ``HOOKVIZ_`` + its name.

    Attributes:
        max_pixels: images that decode to more pixels than this are refused.
        upload_mb: the largest file that can be uploaded, in megabytes.
        checkpoint_mb: the largest checkpoint that can be uploaded, in megabytes.
        session_mb: megabytes of activations that one session keeps.
        cache_mb: megabytes of activations that all sessions of the process keep together.
        models_mb: megabytes of loaded models that all sessions share.
        max_input: the largest side in pixels that an image may have as a network's input.
        weights_url: a mirror that serves torchvision's weights under the same file names.
        model: ``package.module:factory`` of a network to list in the app beside the catalog.
    """

    max_pixels: int = 100_000_000
    upload_mb: int = 50
    checkpoint_mb: int = 600
    session_mb: int = 256
    cache_mb: int = 1024
    models_mb: int = 3072  # the largest model of the catalog takes 2,460
    max_input: int = 1024
    weights_url: str = ""
    model: str = ""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings that `environment` asks for, with defaults for what it leaves out.

    Raises:
        SettingError: a value is not a whole number above 0, with the variable's name.
        UnknownNameError: a variable starts with ``HOOKVIZ_`` and is none of ours.
    """
    known = {f"HOOKVIZ_{setting.name.upper()}": setting for setting in fields(Settings)}
    chosen: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith("HOOKVIZ_") or variable in _FOR_TESTS:
            continue
        if variable not in known:
            raise UnknownNameError("setting", variable, known)
        setting = known[variable]
        chosen[setting.name] = (
            _whole(variable, value, setting.default) if setting.type is int else value
        )
    return Settings(**chosen)


def _whole(variable: str, value: str, default: object) -> int:
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and int(digits) > 0):
        raise SettingError(
            f"{variable}={value!r} is not a whole number above 0; "
            f"without it HookViz takes {default}."
        )
    return int(digits)


_FOR_TESTS = {"HOOKVIZ_REQUIRE_BROWSER"}


@cache
def settings() -> Settings:
    """The settings of this process, read from its environment once."""
    return read_settings(os.environ)
