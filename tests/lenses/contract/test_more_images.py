from typing import Any

import pytest
import torch

from hookviz.capturing.inputs import prepare
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images import reading
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.more_images import prepared_alike
from hookviz.types import Model
from tests.pictures import picture


@pytest.mark.parametrize("options", [{}, {"size": 24}, {"whole": True}, {"size": 9, "whole": True}])
def test_images_become_inputs_as_the_first_one_did(tiny: Model, options: dict[str, Any]) -> None:
    image = reading.read(picture())
    subject = Subject(tiny, prepare(tiny, image, **options), image)
    listed = {"first": image, "other": picture(5), "tensor": torch.ones(3, 8, 8), "broken": b"no"}
    told: list[float] = []
    inputs = prepared_alike(subject, listed, ProgressReporter(told.append))
    assert list(inputs) == list(listed)
    assert inputs["first"] is subject.model_input
    expected = prepare(tiny, picture(5), **options)
    assert inputs["other"].digest == expected.digest
    assert inputs["tensor"].tensor.shape == (1, 3, 8, 8)
    assert inputs["broken"] == b"no"
    assert told[-1] == 1
