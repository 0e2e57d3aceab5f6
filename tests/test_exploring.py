"""Which home the explorer gets; a real kernel runs in the examples and in e2e."""

import pytest
from torch import Tensor

import hookviz
from hookviz.errors import HookVizError
from hookviz.notebook import kernel
from hookviz.notebook.widget import ExplorerWidget
from hookviz.types import Model
from tests.notebook.comms import client_comms


def test_an_image_is_explored_in_a_kernel_with_anywidget_alone(
    tiny: Model, noise: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HookVizError, match=r"notebook's kernel.*explore\(model\) opens the app"):
        hookviz.explore(tiny, noise)
    monkeypatch.setattr("hookviz.exploring.in_notebook", lambda: True)
    with client_comms(monkeypatch):
        widget = hookviz.explore(tiny, noise, view={"layer": "conv2"})
    assert isinstance(widget, ExplorerWidget)
    assert widget.layer == "conv2"
    monkeypatch.setattr("hookviz.exploring.in_notebook", lambda: True)
    monkeypatch.setattr(kernel, "find_spec", lambda _name: None)
    with pytest.raises(HookVizError, match=r"pip install 'hookviz\[notebook\]'"):
        hookviz.explore(tiny, noise)
