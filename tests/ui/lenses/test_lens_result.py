from collections.abc import Iterator
from inspect import isabstract
from typing import Any

from hookviz.drawing.panels import Panel
from hookviz.ui.lenses.lens_result import _WIDGETS


def _kinds(kind: type[Any]) -> Iterator[str]:
    for subclass in kind.__subclasses__():
        if not isabstract(subclass):
            yield subclass.__name__  # and not the class: a dataclass with slots is made twice
        yield from _kinds(subclass)


def test_every_kind_of_panel_has_a_widget() -> None:
    assert {kind.__name__ for kind in _WIDGETS} == set(_kinds(Panel))
