from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.batch import parts_by_image
from tests.networks import Tiny, all_hooks, as_model, random_input, seeded
from tests.pictures import picture

IMAGES = 4
OF_EACH = torch.randn(IMAGES, 3, 5, generator=torch.Generator().manual_seed(0))


def same_as_alone(
    model: hookviz.Model, images: list[Any], names: list[str], together: Any = None
) -> tuple[hookviz.Capture, ...]:
    """What a batch of images has, each of which is held against its capture alone."""
    batch = hookviz.capture(model, images if together is None else together, names, inputs=True)
    for image, found in zip(images, batch, strict=True):
        alone = hookviz.capture(model, image, names, inputs=True)
        assert list(found) == list(alone)
        assert found.model_input.digest == alone.model_input.digest
        for address in alone:
            torch.testing.assert_close(found[address].values, alone[address].values)
        for ours, theirs in zip(found.layer_inputs, alone.layer_inputs, strict=True):
            assert ours.address == theirs.address
            torch.testing.assert_close(ours.values, theirs.values)
        torch.testing.assert_close(found.logits, alone.logits)
    return tuple(batch)


def test_each_image_has_the_capture_that_it_has_alone() -> None:
    model = as_model(seeded(Tiny))
    images = [picture(seed) for seed in range(3)]
    together = same_as_alone(model, images, ["conv1", "relu"])
    assert list(together[0]) == ["conv1", "relu", "relu#1"]
    assert all(found.model_input.picture is not None for found in together)
    assert hookviz.make_grid(together[0]["conv1"]).shown == "all 4 channels"
    assert not torch.equal(together[0]["conv1"].values, together[1]["conv1"].values)
    batch = torch.cat([random_input(seed, 5) for seed in range(2)])
    found = hookviz.capture(model, batch)
    assert torch.equal(found[1].input, batch[1:])
    (single,) = hookviz.capture(model, [batch[0]])
    torch.testing.assert_close(single["conv2"].values, found[0]["conv2"].values)
    assert single.logits is not None
    assert single.logits.shape == (5,)
    assert all_hooks(model) == 0


class Part(nn.Module):
    """Runs a function, which may be of a layer of its own."""

    def __init__(self, way: Callable[..., Any], layer: nn.Module | None = None) -> None:
        super().__init__()
        self.way, self.layer = way, layer

    def forward(self, tokens: Tensor) -> Any:
        return self.way(tokens) if self.layer is None else self.way(self.layer, tokens)


class Tokens(nn.Module):
    """Four tokens of eight numbers for an image of 16×16, before whatever is looked at."""

    def __init__(
        self,
        part: Callable[[], nn.Module] = nn.Identity,
        mixed: Callable[[Any, Tensor], Any] = lambda part, tokens: part(tokens),
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 8, stride=8)
        self.head = nn.Linear(8, 5)
        self.part, self.mixed = part(), mixed

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.mixed(self.part, self.conv(images).flatten(2).transpose(1, 2))
        scores: Tensor = self.head(tokens.mean(1))
        return scores


def attention(layer: nn.Module, tokens: Tensor) -> Tensor:
    """Has the images second."""
    first = tokens.transpose(0, 1)
    return layer(first, first, first)[0].transpose(0, 1)  # type: ignore[no-any-return]


def position() -> Tokens:
    """Adds a position code, which has one row for all images."""
    code = torch.randn(1, 4, 8)
    return Tokens(lambda: Part(lambda _: code * 2), lambda part, tokens: tokens + part(tokens))


WHEREVER: dict[str, Callable[[], Tokens]] = {
    "attention": lambda: Tokens(lambda: nn.MultiheadAttention(8, 2), attention),
    # states layer by layer, the images second
    "recurrent": lambda: Tokens(
        lambda: nn.LSTM(8, 8, 2, batch_first=True), lambda part, tokens: part(tokens)[0]
    ),
    "position": position,
    # two windows of two tokens for each image, those of an image one after another
    "windows": lambda: Tokens(
        lambda: Part(lambda tokens: {"windows": tokens.reshape(-1, 2, 8), "tokens": tokens}),
        lambda part, tokens: tokens + 0 * part(tokens)["windows"].mean(),
    ),
    # drops a batch of one, and whatever else is one
    "squeezed": lambda: Tokens(
        lambda: Part(torch.squeeze), lambda part, tokens: tokens + 0 * part(tokens.mean(1)).mean()
    ),
}


@pytest.mark.parametrize("kind", WHEREVER)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_images_are_found_wherever_they_are(kind: str, count: int) -> None:
    """Four images have as many tokens each, and eight as many numbers each."""
    model = as_model(seeded(WHEREVER[kind]))
    images = torch.cat([random_input(seed) for seed in range(count)])
    same_as_alone(model, list(images[:, None]), ["conv", "part", "head"], images)
    assert all_hooks(model) == 0


def of_all(whole: Callable[[Tensor], Tensor]) -> Tokens:
    """It puts out something of the whole batch."""
    return Tokens(lambda: Part(whole), lambda part, tokens: tokens + part(tokens).mean())


WHOLE: dict[str, Callable[[], Tokens]] = {
    "a mean": lambda: of_all(lambda tokens: tokens.mean(0)),
    "how many": lambda: of_all(lambda tokens: tokens.new_full((4, 8), len(tokens))),
    # once an image, with the image's tokens alone
    "each by itself": lambda: Tokens(
        lambda: Part(lambda tokens: tokens * 2),
        lambda part, tokens: torch.stack([part(each) for each in tokens]),
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("last", [1.0, 3.0])
def test_what_has_no_part_for_each_is_refused_by_its_name(kind: str, last: float) -> None:
    """Also where the number of the whole batch is that of the image that is tried alone."""
    model = as_model(seeded(WHOLE[kind]))
    images = torch.cat([random_input(seed) for seed in range(4)])
    images[-1] *= last
    with pytest.raises(hookviz.ModelError, match=r"part has .* for 4 images together, and so no"):
        hookviz.capture(model, images, ["conv", "part"])
    assert len(hookviz.capture(model, images, "conv")) == 4
    assert all_hooks(model) == 0


def in_fours(_part: Any, tokens: Tensor) -> Tensor:
    """It takes four images at a time, and hands some numbers on from one to the next."""
    fours = tokens.reshape(-1, 4, 4, 8)
    return torch.cat([fours[..., :2].roll(1, 1), fours[..., 2:]], -1).flatten(0, 1)


def not_one(_part: Any, tokens: Tensor) -> Tensor:
    """It takes off what its images have in common, and so takes no single one."""
    if len(tokens) == 1:
        raise ValueError("one image has nothing in common with others")
    return tokens - tokens.mean(0)


@pytest.mark.parametrize("mixed", [in_fours, not_one])
def test_a_network_that_takes_no_single_image(mixed: Callable[[Any, Tensor], Tensor]) -> None:
    network = seeded(lambda: Tokens(mixed=mixed))
    images = torch.cat([random_input(seed) for seed in range(4)])
    together = hookviz.capture(as_model(network), images, ["conv", "head"])
    seen: list[Tensor] = []
    with network.head.register_forward_hook(lambda _module, _inputs, output: seen.append(output)):
        network(images)
    for number, found in enumerate(together):
        torch.testing.assert_close(found["head"].values, seen[0][number].detach())
        torch.testing.assert_close(found.logits, seen[0][number].detach())
        torch.testing.assert_close(
            found["conv"].values, network.conv(images[[number]])[0].detach(), rtol=1e-5, atol=1e-5
        )
    of_tokens = seeded(lambda: Tokens(mixed=lambda _part, tokens: tokens.mean(0)[:, None]))
    together = hookviz.capture(as_model(of_tokens), images, "conv")
    assert all(found.logits is None for found in together)  # no score of each image


def test_progress_is_of_all_passes_and_ends_them() -> None:
    told: list[float] = []
    model, images = as_model(seeded(position)), torch.cat([random_input(0), random_input(1)])
    found = hookviz.capture(model, images, "part", progress=told.append)
    assert found[0].forward_passes == 3  # the batch, an image alone, and another for the code
    assert told == sorted(told)
    assert told[-1] == 1

    class Stopped(hookviz.ModelError):
        pass

    def stop(share: float) -> None:
        if share > 0.7:
            raise Stopped("enough")

    with pytest.raises(Stopped, match="enough"):
        hookviz.capture(model, images, "part", progress=stop)
    assert all_hooks(model) == 0


def test_images_of_several_sizes_go_through_in_several_passes() -> None:
    model = as_model(nn.Sequential(nn.Conv2d(3, 2, 1)))
    images = [torch.rand(3, 5, 5), torch.rand(3, 5, 5), torch.rand(3, 6, 5)]
    batch = hookviz.capture(model, images)
    assert [cap["0"].raw.shape[1] for cap in batch] == [5, 5, 6]
    with pytest.raises(hookviz.HookVizError, match=r"0 has 2×5×5 and 2×6×5 .*batch\[0\]\['0'\]"):
        batch["0"]
    empty: Any
    for empty in ([], torch.ones(0, 3, 5, 5)):
        with pytest.raises(hookviz.ImageError, match="no image in the batch"):
            hookviz.capture(model, empty, "0")


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda images: images,
        lambda images: images.transpose(0, 1),
        lambda images: images.movedim(0, 2),
        lambda images: images.flatten(0, 1),  # image by image
        lambda images: images.transpose(0, 1).flatten(0, 1),  # window by window
        lambda images: images.movedim(0, 1).flatten(1, 2),
        lambda images: images.movedim(0, 2).flatten(1, 2),
        torch.squeeze,
        lambda images: images.mean((1, 2)),
    ],
)
@pytest.mark.parametrize("numbers", [[3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 3, 3, 3, 3]])
def test_each_part_is_what_there_is_for_one_image(laid_out: object, numbers: list[int]) -> None:
    assert callable(laid_out)
    other = OF_EACH[numbers]  # ends with the last image
    parts: Any = parts_by_image(laid_out(OF_EACH), IMAGES, laid_out(other), len(other))
    for number, part in enumerate(parts):
        alone = laid_out(OF_EACH[[number]])
        assert torch.equal(part.reshape(alone.shape), alone)
        assert part.shape == alone.shape or laid_out is torch.squeeze


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda images: images.mean(0),
        lambda _images: torch.ones(IMAGES, 5),
        lambda images: torch.tensor(float(len(images))),
        lambda images: images.mean(1) @ images.mean(1).T,
        lambda images: images.new_zeros(len(images) + 1, 5),
        lambda images: torch.cat([images.mean(0, keepdim=True), images]),
        lambda images: images.roll(1, 0).flatten(0, 1),
    ],
)
def test_what_has_no_part_for_each_is_none(laid_out: object) -> None:
    assert callable(laid_out)
    assert parts_by_image(laid_out(OF_EACH), IMAGES, laid_out(OF_EACH[-1:]), 1) is None
    # Of two axes as long as the batch the values tell; for one image its network drops the batch.
    square = torch.randn(IMAGES, IMAGES, 2, generator=torch.Generator().manual_seed(1))
    parts: Any = parts_by_image(square, IMAGES, square[:, -1], 1)
    assert all(torch.equal(part, square[:, number]) for number, part in enumerate(parts))
