"""What sweeps go through: networks of the catalog, each of them built once for all sweeps.

pytest runs the tests that share a parameter of a whole session one after the other, whichever files
they are in. So the fixture `of_catalog` of `tests/conftest.py` builds a network, every sweep has a
look at it, and then it goes.

`make sweep` goes through all; ``pytest -m sweep`` through one network of a kind, which stands for
the larger ones of its family: `tests/test_every_model.py` compares what they are made of.
"""

import pytest

from hookviz.models import catalog
from hookviz.models.bundled import BUNDLED
from tests.every_way import EVERY_WAY

_CHOSEN = frozenset(
    (
        *("shapesnet", "shapesvit", "squeezenet", "alexnet", "convnext_tiny", "densenet121"),
        *(
            "efficientnet_b0",
            "efficientnet_v2_s",
            "googlenet",
            "inception_v3",
            "mnasnet0_5",
            "mobilenet_v2",
        ),
        *("mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnet50"),
        *("shufflenet_v2_x0_5", "squeezenet1_0", "vgg11_bn"),
    )
)

ALL_LENSES = frozenset(
    (
        *("shapesnet", "shapesvit", "squeezenet", "resnet18", "mobilenet_v3_small"),
        *("convnext_tiny", "inception_v3"),
    )
)
"""Small ones that together have every kind of layer and of branch; all lenses go through them."""


def _each_of(names: list[str]) -> pytest.MarkDecorator:
    networks = [(name, "pretrained" if name in BUNDLED else "random") for name in names]
    return pytest.mark.parametrize("of_catalog", networks, ids=names, indirect=True)


_SPECS = tuple(each for each in catalog.described_models() if each.task == "classification")
_ALL = [spec.name for spec in _SPECS]
_FAMILIES = {spec.family for spec in _SPECS if spec.name in _CHOSEN}
ONE_OF_A_KIND = _CHOSEN | {
    min((each for each in _SPECS if each.family == family), key=lambda spec: spec.parameters).name
    for family in {spec.family for spec in _SPECS} - _FAMILIES
}
"""The smallest of those that are built of the same parts, and one at least of each family."""

IN_EVERY_NETWORK = _each_of([name for name in _ALL if EVERY_WAY or name in ONE_OF_A_KIND])
