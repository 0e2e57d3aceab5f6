"""Networks of the catalog and their state dicts, for the tests of what fits an architecture."""

from collections.abc import Callable

import pytest
from torch import Tensor, nn
from torchvision import models

from hookviz.models import catalog, networks, shapesnet
from hookviz.models.networks import StateDictMismatchError
from tests.networks import seeded

State = dict[str, Tensor]


SMALL: dict[str, Callable[..., nn.Module]] = {
    "shapesnet": shapesnet.ShapesNet,
    "squeezenet1_1": models.squeezenet1_1,
    "mnasnet0_5": models.mnasnet0_5,  # looks at the version of its file
    "regnet_y_400mf": models.regnet_y_400mf,  # computes its widths with tensors
    "resnet18": models.resnet18,
}


def built(name: str, classes: int | None = None) -> nn.Module:
    if classes is None:
        return seeded(SMALL[name])
    option = "classes" if name == "shapesnet" else "num_classes"
    return seeded(lambda: SMALL[name](**{option: classes}))


def prefixed(prefix: str) -> Callable[[State], State]:
    return lambda state: {prefix + key: value for key, value in state.items()}


def put_in(name: str, state: State) -> nn.Module:
    return networks.with_weights(catalog.find_model(name), state, "own.pth")


def state_dict_mismatch(name: str, state: State) -> StateDictMismatchError:
    with pytest.raises(StateDictMismatchError) as caught:
        put_in(name, state)
    return caught.value
