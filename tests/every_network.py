"""What sweeps go through: every network of the catalog, each of them built once for all sweeps.

pytest runs the tests that share a parameter of a whole session one after the other, whichever files
they are in. So the fixture `of_catalog` of `tests/conftest.py` builds a network, every sweep has a
look at it, and then it goes.
"""

import pytest

from hookviz.models import catalog
from hookviz.models.bundled import BUNDLED

NAMES = [spec.name for spec in catalog.described_models()]

IN_EVERY_NETWORK = pytest.mark.parametrize(
    "of_catalog",
    [(name, "pretrained" if name in BUNDLED else "random") for name in NAMES],
    ids=NAMES,
    indirect=True,
)
