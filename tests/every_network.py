"""What sweeps go through: every network of the catalog, each of them built once for all sweeps.

pytest runs the tests that share a parameter of a whole session one after the other, whichever files
they are in. So the fixture `of_catalog` of `tests/conftest.py` builds a network, every sweep has a
look at it, and then it goes.

What takes long goes through one network of a kind, or with EVERY_WAY=1 (`make sweep`) through all.
"""

import os

import pytest

from hookviz.models import catalog
from hookviz.models.bundled import BUNDLED

ONE_OF_A_KIND = frozenset(
    (
        *("shapesnet", "squeezenet", "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0"),
        *("efficientnet_v2_s", "googlenet", "inception_v3", "mnasnet0_5", "mobilenet_v2"),
        *("mobilenet_v3_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18"),
        *("resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0", "vgg11_bn"),
    )
)
"""The smallest of those that are built of the same parts."""

EVERY_WAY = os.environ.get("EVERY_WAY") == "1"


def is_looked_at_closely(name: str) -> bool:
    """Whether what takes long goes through that network too."""
    return EVERY_WAY or name in ONE_OF_A_KIND


_ALL = [spec.name for spec in catalog.described_models()]
_CLOSELY = [name for name in _ALL if is_looked_at_closely(name)]


def _each_of(names: list[str]) -> pytest.MarkDecorator:
    networks = [(name, "pretrained" if name in BUNDLED else "random") for name in names]
    return pytest.mark.parametrize("of_catalog", networks, ids=names, indirect=True)


# pytest tells parameters by their number in the list: the same networks are first in both.
IN_EVERY_NETWORK = _each_of([*_CLOSELY, *(name for name in _ALL if name not in _CLOSELY)])
IN_EVERY_KIND = _each_of(_CLOSELY)
