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


def test_each_image_has_the_capture_that_it_has_alone() -> None:
    model = as_model(seeded(Tiny))
    images = [picture(seed) for seed in range(3)]
    together = hookviz.capture(model, images, ["conv1", "relu"], inputs=True)
    assert len(together) == 3
    for image, found in zip(images, together, strict=True):
        alone = hookviz.capture(model, image, ["conv1", "relu"], inputs=True)
        assert list(found) == list(alone) == ["conv1", "relu", "relu#1"]
        assert found.model_input.digest == alone.model_input.digest
        assert found.model_input.picture is not None
        for address in alone:
            torch.testing.assert_close(found[address].values, alone[address].values)
        for ours, theirs in zip(found.layer_inputs, alone.layer_inputs, strict=True):
            assert ours.address == theirs.address
            torch.testing.assert_close(ours.values, theirs.values)
        torch.testing.assert_close(found.logits, alone.logits)
        assert hookviz.make_grid(found["conv1"]).shown == "all 4 channels"
    assert not torch.equal(together[0]["conv1"].values, together[1]["conv1"].values)
    assert all_hooks(model) == 0


def test_a_tensor_of_several_images_and_of_one() -> None:
    model = as_model(seeded(Tiny))
    batch = torch.cat([random_input(seed, 2 + 3) for seed in range(2)])
    found = hookviz.capture(model, batch)
    assert torch.equal(found[1].input, batch[1:])
    (single,) = hookviz.capture(model, [batch[0]])
    torch.testing.assert_close(single["conv2"].values, found[0]["conv2"].values)
    assert single.logits is not None
    assert single.logits.shape == (5,)


class Tokens(nn.Module):
    """Four tokens of eight numbers for an image of 16×16, before whatever is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 8, stride=8)
        self.head = nn.Linear(8, 5)
        self.build()

    def build(self) -> None:
        """The part that is looked at."""

    def mixed(self, tokens: Tensor) -> Tensor:
        """Tokens ``(N, 4, 8)`` once that part has run."""
        return tokens

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.mixed(self.conv(images).flatten(2).transpose(1, 2))
        scores: Tensor = self.head(tokens.mean(1))
        return scores


class Attention(Tokens):
    """Has the images second."""

    def build(self) -> None:
        self.part = nn.MultiheadAttention(8, 2)

    def mixed(self, tokens: Tensor) -> Tensor:
        first = tokens.transpose(0, 1)
        found: Tensor = self.part(first, first, first)[0]
        return found.transpose(0, 1)


class Recurrent(Tokens):
    """Puts out its states layer by layer, the images second."""

    def build(self) -> None:
        self.part = nn.LSTM(8, 8, 2, batch_first=True)

    def mixed(self, tokens: Tensor) -> Tensor:
        return torch.as_tensor(self.part(tokens)[0])


class Code(nn.Module):
    """A position code, in one of several shapes."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.randn(shape))

    def forward(self, _tokens: Tensor) -> Tensor:
        return self.values * 2


class Position(Tokens):
    def build(self) -> None:
        self.part = Code(1, 4, 8)

    def mixed(self, tokens: Tensor) -> Tensor:
        return torch.as_tensor(tokens + self.part(tokens))


class Windows(nn.Module):
    """Two windows of two tokens for each image, those of an image one after another."""

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        return {"windows": tokens.reshape(-1, 2, 8), "tokens": tokens}


class Windowed(Tokens):
    def build(self) -> None:
        self.part = Windows()

    def mixed(self, tokens: Tensor) -> Tensor:
        return torch.as_tensor(tokens + 0 * self.part(tokens)["windows"].mean())


class Squeezed(Tokens):
    """Drops a batch of one, and whatever else is one."""

    def build(self) -> None:
        self.part = Squeeze()

    def mixed(self, tokens: Tensor) -> Tensor:
        return torch.as_tensor(tokens + 0 * self.part(tokens.mean(1)).mean())


class Squeeze(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values.squeeze()


@pytest.mark.parametrize(
    "kind",
    [Attention, Recurrent, Position, Windowed, Squeezed],
)
@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_images_are_found_wherever_they_are(kind: type[Tokens], count: int) -> None:
    """Four images have as many tokens each, and eight as many numbers each."""
    model = as_model(seeded(kind))
    images = torch.cat([random_input(seed) for seed in range(count)])
    names = ["conv", "part", "head"]
    together = hookviz.capture(model, images, names, inputs=True)
    assert len(together) == count
    for number, found in enumerate(together):
        alone = hookviz.capture(model, images[[number]], names, inputs=True)
        assert list(found) == list(alone)
        for address in alone:
            torch.testing.assert_close(found[address].values, alone[address].values)
        for ours, theirs in zip(found.layer_inputs, alone.layer_inputs, strict=True):
            assert ours.address == theirs.address
            torch.testing.assert_close(ours.values, theirs.values)
        torch.testing.assert_close(found.logits, alone.logits)
    assert all_hooks(model) == 0


class OfAll(Tokens):
    """Puts out something of the whole batch."""

    def build(self) -> None:
        self.part = Of(self.whole)

    def whole(self, tokens: Tensor) -> Tensor:
        """What that is."""
        return tokens.mean(0)

    def mixed(self, tokens: Tensor) -> Tensor:
        return torch.as_tensor(tokens + self.part(tokens).mean())


class Of(nn.Module):
    def __init__(self, whole: Any) -> None:
        super().__init__()
        self.whole = whole

    def forward(self, tokens: Tensor) -> Tensor:
        return torch.as_tensor(self.whole(tokens))


class HowMany(OfAll):
    def whole(self, tokens: Tensor) -> Tensor:
        return tokens.new_full((4, 8), len(tokens))


class EachByItself(OfAll):
    """Is called once an image, with the image's tokens alone."""

    def whole(self, tokens: Tensor) -> Tensor:
        return tokens * 2

    def mixed(self, tokens: Tensor) -> Tensor:
        return torch.stack([self.part(each) for each in tokens])


@pytest.mark.parametrize("kind", [OfAll, HowMany, EachByItself])
@pytest.mark.parametrize("last", [1.0, 3.0])
def test_what_has_no_part_for_each_is_refused_by_its_name(kind: type[OfAll], last: float) -> None:
    """Also where the number of the whole batch is that of the image that is tried alone."""
    model = as_model(seeded(kind))
    images = torch.cat([random_input(seed) for seed in range(4)])
    images[-1] *= last
    with pytest.raises(hookviz.ModelError, match=r"part has .* for 4 images together, and so no"):
        hookviz.capture(model, images, ["conv", "part"])
    assert len(hookviz.capture(model, images, "conv")) == 4
    assert all_hooks(model) == 0


class Frames(Tokens):
    """Takes four images at a time, or eight, and hands some numbers on from one to the next."""

    def mixed(self, tokens: Tensor) -> Tensor:
        fours = tokens.reshape(-1, 4, 4, 8)
        return torch.cat([fours[..., :2].roll(1, 1), fours[..., 2:]], -1).flatten(0, 1)


class NotOne(Tokens):
    """Takes off what its images have in common, and so takes no single one."""

    def mixed(self, tokens: Tensor) -> Tensor:
        if len(tokens) == 1:
            raise ValueError("one image has nothing in common with others")
        return tokens - tokens.mean(0)


@pytest.mark.parametrize("kind", [Frames, NotOne])
def test_a_network_that_takes_no_single_image(kind: type[Tokens]) -> None:
    network, images = seeded(kind), torch.cat([random_input(seed) for seed in range(4)])
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


def test_what_is_no_score_of_each_image_is_none() -> None:
    class OfTokens(Tokens):
        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.head(self.conv(images).flatten(2).mean(0).T)  # (4, 5)
            return scores

    images = torch.cat([random_input(seed) for seed in range(4)])
    together = hookviz.capture(as_model(seeded(OfTokens)), images, "conv")
    assert all(found.logits is None for found in together)


def test_progress_is_of_all_passes_and_ends_them() -> None:
    told: list[float] = []
    model, images = as_model(seeded(Position)), torch.cat([random_input(0), random_input(1)])
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


def test_what_is_no_batch_is_refused() -> None:
    model = as_model(nn.Sequential(nn.Conv2d(3, 2, 1)))
    nothing: list[Any] = [[], torch.ones(0, 3, 5, 5)]
    for empty in nothing:
        with pytest.raises(hookviz.ImageError, match="no image in the batch"):
            hookviz.capture(model, empty, "0")


def test_images_of_several_sizes_go_through_in_several_passes() -> None:
    model = as_model(nn.Sequential(nn.Conv2d(3, 2, 1)))
    images = [torch.rand(3, 5, 5), torch.rand(3, 5, 5), torch.rand(3, 6, 5)]
    batch = hookviz.capture(model, images)
    assert [cap["0"].raw.shape[1] for cap in batch] == [5, 5, 6]
    with pytest.raises(hookviz.HookVizError, match=r"0 has 2×5×5 and 2×6×5 .*batch\[0\]\['0'\]"):
        batch["0"]


def image_by_image(images: Tensor) -> Tensor:
    return images.flatten(0, 1)


def window_by_window(images: Tensor) -> Tensor:
    return images.transpose(0, 1).flatten(0, 1)


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda images: images,
        lambda images: images.transpose(0, 1),
        lambda images: images.movedim(0, 2),
        image_by_image,
        window_by_window,
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


def test_of_two_axes_as_long_as_the_batch_the_values_tell() -> None:
    """For one image its network drops the batch."""
    square = torch.randn(IMAGES, IMAGES, 2, generator=torch.Generator().manual_seed(1))
    parts: Any = parts_by_image(square, IMAGES, square[:, -1], 1)
    assert all(torch.equal(part, square[:, number]) for number, part in enumerate(parts))
