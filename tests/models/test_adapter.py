from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.models.adapter import Example
from tests.every_lens import SLUGS_OF_TENSORS
from tests.kinds_of_networks import small_detector
from tests.networks import Tiny, random_input, seeded
from tests.pictures import picture


class Two(nn.Module):
    """An image and a vector that scales its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.scale = nn.Linear(2, 4)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor, about: Tensor, *, power: float = 1.0) -> Tensor:
        scales = self.scale(about)[:, :, None, None]
        scores: Tensor = self.head((self.conv(images) * scales).mean((2, 3)) ** power)
        return scores


class OfADictionary(Two):
    def forward(self, batch: Mapping[str, Any]) -> Tensor:  # type: ignore[override]
        return super().forward(batch["image"], batch["more"]["about"])


ABOUT = torch.tensor([[1.0, 2.0]])
IMAGE = random_input(5, 24)
EXAMPLES: dict[str, tuple[type[Two], Example]] = {
    "positional": (Two, (IMAGE, ABOUT)),
    "by name": (Two, {"about": ABOUT, "images": IMAGE, "power": 2.0}),
    "dictionary": (OfADictionary, ({"more": {"about": ABOUT}, "image": IMAGE},)),
}


@pytest.mark.parametrize(("build", "example"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_network_of_several_inputs_takes_the_image(build: type[Two], example: Example) -> None:
    network = seeded(build).eval()
    model = hookviz.wrap(network, example=example)
    assert model.preprocess == hookviz.Preprocess(resize=24, crop=24)
    assert model.network is network
    listed = [layer.name for layer in hookviz.list_layers(model, kind="all")]
    assert listed == ["scale", "conv", "head"]
    image = random_input(1, 24)
    cap = hookviz.capture(model, image)
    if isinstance(example, Mapping):
        expected = network(image, ABOUT, power=2.0)
    elif build is OfADictionary:
        expected = network({"image": image, "more": {"about": ABOUT}})
    else:
        expected = network(image, ABOUT)
    assert cap.logits is not None
    assert torch.equal(cap.logits, expected[0].detach())
    assert torch.equal(cap["conv"].values, network.conv(image)[0].detach())
    cache = Budget(1 << 20).cache(1 << 20)
    for about in (ABOUT, -ABOUT):  # each has a place of its own in a cache
        other = hookviz.wrap(seeded(Two).eval(), example=(IMAGE, about))
        for passes in (1, 0):
            found = hookviz.capture(other, IMAGE, cache=cache)
            assert found.forward_passes == passes
            assert found.logits is not None
            assert torch.equal(found.logits, other.network(IMAGE, about)[0].detach())


@pytest.mark.parametrize("lens", SLUGS_OF_TENSORS)
def test_every_lens_works_on_it(lens: str) -> None:
    model = hookviz.wrap(seeded(Two), example=(IMAGE, ABOUT))
    hookviz.run_lens(lens, model, random_input(1, 24))


def test_the_examples_tensors_and_the_module_stay_as_they_are() -> None:
    class Spoils(Two):
        """It writes into what it is given."""

        def forward(self, images: Tensor, about: Tensor, *, power: float = 1.0) -> Tensor:
            scores = super().forward(images, about, power=power)
            images.zero_()
            about.zero_()
            return scores

    about, image = ABOUT.clone(), IMAGE.clone()
    network = seeded(Spoils)
    model = hookviz.wrap(network, example=(image, about))
    first, second = (hookviz.capture(model, IMAGE).logits for _ in range(2))
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)
    assert torch.equal(about, ABOUT)
    assert torch.equal(image, IMAGE)
    assert "forward" not in vars(network)
    assert not dict(network.named_buffers())
    own = vars(network)["forward"] = network.forward
    hookviz.capture(model, IMAGE)
    assert vars(network)["forward"] is own  # one of its own is put back


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        (IMAGE, "neither a tuple .* nor a dict"),
        ((ABOUT,), r"no image in it .1×2"),
        ((), "no image in it .no tensor at all"),
        ((torch.zeros(2, 3, 8, 8), ABOUT), "2 images; give an example of one"),
    ],
)
def test_an_example_that_does_not_do_is_refused(example: Any, reason: str) -> None:
    with pytest.raises(hookviz.ModelError, match=reason):
        hookviz.wrap(seeded(Two), example=example)


def test_a_model_takes_no_example_and_one_that_does_not_run_is_told_by_the_first_look() -> None:
    with pytest.raises(hookviz.ModelError, match="is a Model already"):
        hookviz.wrap(hookviz.wrap(seeded(Tiny)), example=(IMAGE,))
    model = hookviz.wrap(seeded(Two), example=(IMAGE, torch.zeros(1, 7)))
    with pytest.raises(hookviz.ModelError, match="scale"):
        hookviz.capture(model, IMAGE)


def test_a_graph_module_takes_an_example() -> None:
    twin, network = (fx.symbolic_trace(seeded(Two)).eval() for _ in range(2))
    with torch.no_grad():
        first, last = twin.get_submodule("conv")(IMAGE), twin(IMAGE, ABOUT)
    model = hookviz.wrap(network, example=(IMAGE, ABOUT))
    for _ in range(2):
        cap = hookviz.capture(model, IMAGE, ["conv", "head"])
        assert torch.equal(cap["conv"].values, first[0])
        assert torch.equal(cap["head"].values, last[0])


LISTS: dict[str, Example | None] = {
    "no example": None,
    "a list": ([torch.rand(3, 64, 64)],),
    "by name": {"images": [torch.rand(3, 64, 64)], "targets": None},
}


@pytest.mark.parametrize("example", LISTS.values(), ids=LISTS)
def test_a_detector_takes_a_list_of_images(example: Example | None) -> None:
    network, images = seeded(small_detector).eval(), torch.rand(2, 3, 64, 64)
    model = hookviz.wrap(network, example=example)
    conv = "backbone.0"
    seen: list[Tensor] = []
    with network.get_submodule(conv).register_forward_hook(lambda *call: seen.append(call[2])):
        network([*images])
    for image, plain in zip(images, seen[0], strict=True):
        found = hookviz.capture(model, image[None], conv)[conv].values
        assert torch.allclose(found, plain, atol=1e-5)
    together = hookviz.capture(model, images, [conv])
    assert torch.allclose(together[1][conv].values, seen[0][1], atol=1e-5)
    given = hookviz.prepare(hookviz.wrap(network), picture()).tensor
    assert 0 <= given.min() < given.max() <= 1  # which it normalises itself


@pytest.mark.parametrize("lens", ["grad-cam", "saliency", "occlusion", "gradients"])
def test_a_detector_is_asked_about_the_best_box_of_a_class(lens: str) -> None:
    image = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    model = hookviz.wrap(seeded(small_detector).eval())
    layer = {"layer": "backbone.0"} if lens in ("grad-cam", "gradients") else {}
    result = hookviz.run_lens(lens, model, image, **layer)  # type: ignore[arg-type]
    with torch.no_grad():
        (boxes,) = model.network([*image])
    assert result.chosen["target"] == int(boxes["labels"][boxes["scores"].argmax()])
