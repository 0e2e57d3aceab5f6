"""What a person may well give by mistake: one sentence each, and what just works."""

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torchvision.models import ResNet18_Weights, ResNet50_Weights

import hookviz
from hookviz.explaining.pruning.pruned_network import METHODS
from hookviz.lenses.contract import running
from hookviz.models import loading, networks
from hookviz.models.derived_models import tensors_of
from tests.networks import as_model, random_input, seeded
from tests.odd_networks import KINDS, ODD
from tests.pictures import picture

SAMPLES = Path(__file__).parent.parent / "assets" / "samples"
IMAGE = random_input(0)


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.zeros(3, 4, 4), torch.zeros(3, 5, 5)])


hv: Any = hookviz  # for what its types would not let pass
MISTAKES: dict[str, tuple[Callable[[hookviz.Model], Any], str]] = {
    "sparse input": (lambda m: hv.capture(m, IMAGE.to_sparse()), "sparse tensor.*to_dense"),
    "nested input": (lambda m: hv.capture(m, nested()), "is a nested tensor"),
    "meta input": (lambda m: hv.capture(m, IMAGE.to("meta")), "without values"),
    "layer by number": (lambda m: hv.capture(m, IMAGE, [0]), r"layers=0: .*'conv1'"),
    "one number": (lambda m: hv.capture(m, IMAGE, 5), "layers=5: a layer goes by its name"),
    "feature layer": (lambda m: hv.extract_features(m, IMAGE, 0), "0 chooses no layers"),
    "lens layer": (lambda m: hv.run_lens("grad-cam", m, IMAGE, layer=0), "'0'"),
    "size as text": (
        lambda m: hv.capture(m, picture(), size="64"),
        "size='64' is not",
    ),
    "size of a tensor": (lambda m: hv.capture(m, IMAGE, size=64), "size=64 is for images"),
    "whole tensor": (lambda m: hv.prepare_input(m, IMAGE, whole=True), "whole=True is for images"),
    "size of an input": (
        lambda m: hv.capture(m, hv.prepare_input(m, IMAGE), size=64),
        "a ModelInput is used as it is",
    ),
    "number of images": (lambda m: hv.extract_features(m, 5), "images=5 is no image"),
    "more images": (lambda m: hv.run_lens("embedding", m, IMAGE, images=5), "images=.*5.*not"),
    "channels": (
        lambda m: hv.run_lens("ablate", m, IMAGE, channels=1.5),
        "channels=1.5 is",
    ),
    "weights": (lambda m: hv.load_model("shapesnet", None), "weights=None is none of"),
    "other weights": (
        lambda m: hv.load_model("resnet18", ResNet50_Weights.DEFAULT),
        "ResNet50_Weights.* are not the weights that ResNet-18 comes with",
    ),
    "watch": (lambda m: hv.watch(m.name).__enter__(), "A torch.nn.Module is taken.*not str"),
}


@pytest.mark.parametrize(("mistake", "reason"), MISTAKES.values(), ids=MISTAKES)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_mistake_is_told_in_a_sentence(
    mistake: Callable[[hookviz.Model], Any], reason: str, tiny: hookviz.Model
) -> None:
    with pytest.raises(hookviz.HookVizError) as told:
        mistake(tiny)
    assert re.search(reason, str(told.value)), told.value
    assert "\n" not in str(told.value)


@pytest.fixture(scope="module")
def odd() -> Callable[[str], hookviz.Model]:
    """A network of an odd kind, wrapped once."""

    @cache
    def wrapped(kind: str) -> hookviz.Model:
        return as_model(seeded(KINDS[kind]).eval())

    return wrapped


OF_EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def outcome(look: Callable[[], Any]) -> Any:
    """What comes of a look; None where it is refused, in a sentence."""
    try:
        return look()
    except hookviz.HookVizError:
        return None


def lenses_of_kinds() -> Iterator[Any]:
    """Each lens with each kind; by day by turns, so that each meets a third of the others."""
    night = pytest.mark.sweep("by day the same lens with other kinds, the kind with other lenses")
    for at, lens in enumerate(hookviz.list_lenses()):
        for turn, kind in enumerate(KINDS):
            slow = (lens.slug, kind) == ("maximize", "Masked")  # attention over all its pixels
            marks = () if (at + turn) % 3 == 0 and not slow else night
            yield pytest.param(lens.slug, kind, marks=marks)


@pytest.mark.parametrize(("lens", "kind"), list(lenses_of_kinds()))
@pytest.mark.filterwarnings("ignore")  # torch's own, of what is not finished there
def test_a_lens_shows_a_network_with_an_odd_layer_or_says_why_not(
    lens: str, kind: str, odd: Callable[[str], hookviz.Model]
) -> None:
    quick: dict[str, Any] = {"steps": 2} if lens in {"maximize", "dream", "inversion"} else {}
    found = outcome(lambda: hookviz.run_lens(lens, odd(kind), picture(), **quick))
    assert found is None or found.panels
    if any(each.name == "layer" for each in running.find_lens(lens).parameters):
        of_odd = outcome(partial(hookviz.run_lens, lens, odd(kind), picture(), layer=ODD, **quick))
        assert of_odd is None or of_odd.panels
    if lens == "verify":
        assert found is not None
        assert found.values["agrees"].all()


@OF_EVERY_KIND
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_a_network_with_an_odd_layer_is_pruned(
    method: str, kind: str, odd: Callable[[str], hookviz.Model]
) -> None:
    pruned = outcome(lambda: hookviz.prune(odd(kind), 0.5, method, image=picture()))
    if pruned is not None:  # half of each convolution's numbers or more
        weight = tensors_of(pruned)["conv.weight"]
        assert int((weight == 0).sum()) >= weight.numel() // 4


@OF_EVERY_KIND
@pytest.mark.filterwarnings("ignore")
def test_several_images_with_an_odd_layer_are_captured_together_or_refused(
    kind: str, odd: Callable[[str], hookviz.Model]
) -> None:
    images = [random_input(1), random_input(2)]
    for layer in ("conv", ODD):
        caps = outcome(partial(hookviz.capture, odd(kind), images, layer))
        for cap, image in zip(caps or (), images, strict=bool(caps)):
            alone = hookviz.capture(odd(kind), image, layer)[layer]
            torch.testing.assert_close(cap[layer].values, alone.values)


GOALS = {
    "function": lambda model: -model,
    "number": 3,
    "name": "conv1",
    "nothing": (),
    "numbers": [3],
}


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_what_is_no_goal_is_refused_with_one_that_is(goal: Any, tiny: hookviz.Model) -> None:
    with pytest.raises(
        hookviz.SettingError, match=r"is no Objective .* hookviz\.Objective\.of_class"
    ):
        hookviz.maximize_activation(tiny, goal, steps=1)


def test_one_channel_is_a_number_and_an_image_by_two_paths_counts_twice(
    tiny: hookviz.Model,
) -> None:
    one = hookviz.run_lens("ablate", tiny, IMAGE, channels=0)
    text = hookviz.run_lens("ablate", tiny, IMAGE, channels="0")
    assert one.chosen["channels"] == text.chosen["channels"] == (0,)
    path = SAMPLES / "star.jpg"
    features = hookviz.extract_features(tiny, [path, path.parent / ".." / "samples" / "star.jpg"])
    assert features.names == ("star.jpg", "star.jpg (2)")


def test_torchs_own_words_for_device_and_weights_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hookviz.load_model("shapesnet", device=torch.device("cpu"))
    assert next(model.network.parameters()).device == torch.device("cpu")
    asked: list[str] = []

    def pretrained(spec: hookviz.ModelSpec, _progress: Any) -> torch.nn.Module:
        asked.append(spec.name)
        return networks.with_random_weights(spec)

    monkeypatch.setattr(loading, "_pretrained", pretrained)
    for weights in (ResNet18_Weights.DEFAULT, ResNet18_Weights.IMAGENET1K_V1):
        assert hookviz.load_model("resnet18", weights).weights == "pretrained"
    assert asked == ["resnet18", "resnet18"]
