import pytest
import torch

from hookviz.models import catalog
from tests.models.state_dicts import built, prefixed, state_dict_mismatch


def test_what_does_not_fit_is_counted_and_the_first_three_are_named() -> None:
    state = built("shapesnet").state_dict()
    for number in range(4):
        state[f"extra{number}.weight"] = torch.ones(1)
    for key in ["stem.first.norm.weight", "stem.first.norm.running_mean"]:
        del state[key]
    state["stage1.first.conv.weight"] = torch.ones(48, 32, 5, 5)
    error = state_dict_mismatch("shapesnet", state)
    text = str(error)
    assert text.startswith("own.pth does not fit ShapesNet: 2 keys are missing (stem.first.norm.w")
    assert (
        "4 keys are not in the architecture (extra0.weight, extra1.weight, extra2.weight, …)"
        in text
    )
    assert (
        "1 key has another shape (stage1.first.conv.weight is (48, 32, 5, 5) and should be "
        "(48, 32, 3, 3))" in text
    )
    assert len(error.unexpected) == 4
    assert error.fits is None


def test_whole_numbers_are_no_weights() -> None:
    state = built("shapesnet").state_dict()
    state["head.weight"] = torch.ones_like(state["head.weight"], dtype=torch.int8)
    assert "head.weight holds int8, not floating point numbers" in str(
        state_dict_mismatch("shapesnet", state)
    )


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        ("resnet50", "resnet18"),
        ("squeezenet1_0", "squeezenet1_1"),
        ("mnasnet1_0", "mnasnet0_5"),
        ("resnet18", "shapesnet"),
        ("shapesnet", "regnet_y_400mf"),
    ],
)
@pytest.mark.parametrize("classes", [None, 3000])
def test_the_architecture_that_fits_is_named(chosen: str, name: str, classes: int | None) -> None:
    error = state_dict_mismatch(chosen, prefixed("module.")(built(name, classes).state_dict()))
    assert error.fits == name
    assert f"It fits {catalog.find_model(name).title}; choose that model." in str(error)


def test_the_likeliest_is_named_where_none_fits_wholly() -> None:
    state = built("resnet18").state_dict()
    del state["layer1.0.conv1.weight"]
    error = state_dict_mismatch("vgg11", state)
    assert error.fits is None
    assert "It is most like ResNet-18, which it does not fit either." in str(error)
    assert "most like" not in str(state_dict_mismatch("resnet18", state))


def test_a_state_dict_of_something_else_fits_nothing() -> None:
    error = state_dict_mismatch(
        "resnet18", {"encoder.weight": torch.ones(4, 4), "x": torch.ones(1)}
    )
    assert len(error.missing) == 102
    assert error.unexpected == ("encoder.weight", "x")
    assert "It fits" not in str(error)
