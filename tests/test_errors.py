import pickle

from hypothesis import given
from hypothesis import strategies as st

from hookviz.errors import UnknownLayerError, UnknownNameError, nearest_names, shorten


def test_an_unknown_name_says_what_is_near_in_any_process() -> None:
    error = UnknownLayerError("layer", "layer1.conv", ["layer1.0.conv1", "head", "layer2.0.conv1"])
    assert str(error).startswith("There is no layer called 'layer1.conv'. Did you mean 'layer1.0")
    assert isinstance(error, UnknownNameError)
    assert error.name == "layer1.conv"
    error = UnknownLayerError("layer", "layer1.conv", ["layer1.0.conv1"])
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    assert type(again) is UnknownLayerError
    assert str(again) == str(error)
    assert (again.kind, again.name, again.nearest) == ("layer", "layer1.conv", error.nearest)


def test_case_and_parts_of_names_are_forgiven() -> None:
    assert nearest_names("ResNet-18", ["vgg16", "resnet18"]) == ("resnet18",)
    assert nearest_names("v2", ["mobilenet_v2", "alexnet"]) == ("mobilenet_v2",)
    assert nearest_names("zzzz", ["alexnet"]) == ()
    assert nearest_names("conv1", ["conv1", "Conv1", "conv2"]) == ("Conv1", "conv2")
    assert nearest_names("conv1", ["conv1"]) == ()


@given(st.text(max_size=3000), st.integers(10, 90))
def test_shorten_keeps_its_limit_and_short_texts(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert short == text or "…" in short
