import gc
import resource
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from streamlit.runtime.scriptrunner import RerunException, StopException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from torch import Tensor, nn

import hookviz
from hookviz.capturing import engine, inputs
from hookviz.capturing.cache import Budget, ByteCache
from hookviz.errors import UnknownLayerError
from hookviz.language.speaking import speaking
from hookviz.types import Model
from tests.networks import TINY_SIDE, Tiny, all_hooks, as_model, random_input, seeded
from tests.pictures import picture


def counting() -> tuple[Model, list[int]]:
    """A tiny network, and a list that grows with every pass of it and of its replicas."""
    passes: list[int] = []

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Tiny()

        def forward(self, images: Tensor) -> Tensor:
            passes.append(1)
            scores: Tensor = self.inner(images)
            return scores

    model = as_model(seeded(Counting))
    hookviz.list_layers(model, input_shape=(3, TINY_SIDE, TINY_SIDE))
    passes.clear()  # those that only looked at what a pass runs
    return model, passes


def test_a_capture_equals_the_layers_recomputed(tiny: Model, noise: Tensor) -> None:
    cap = hookviz.capture(tiny, noise)
    network: Any = tiny.network
    with torch.no_grad():
        first = network.conv1(noise)
        second = network.conv2(F.relu(first))
        scores = network(noise)
    assert list(cap) == ["conv1", "conv2"]
    assert torch.equal(cap["conv1"].values, first[0])
    assert torch.equal(cap["conv2"].values, second[0])
    assert cap.logits is not None
    assert torch.equal(cap.logits, scores[0])
    assert cap["conv1"].values.shape == (4, TINY_SIDE, TINY_SIDE)
    assert torch.equal(cap.input, noise)
    for side in (3, 4):  # tiny and odd inputs that the network takes are taken
        given = torch.ones(3, side, side + 2)
        found = hookviz.capture(tiny, given)["conv1"].values
        with torch.no_grad():
            assert torch.equal(found, network.conv1(given))
    assert cap.forward_passes == 1
    assert cap.seconds > 0
    chances = torch.softmax(cap.logits.double(), 0)
    first_two, top = chances.argsort(descending=True)[:2].tolist(), cap.predictions(2)
    assert [name for name, _ in top] == [f"class {index}" for index in first_two]
    assert sum(chance for _, chance in cap.predictions(99)) == pytest.approx(1)
    with speaking("zh_CN"):  # names are those of the weights in any language
        star = hookviz.capture(hookviz.load_model("shapesnet"), "assets/samples/star.jpg")
        assert star.predictions(1)[0][0] == "star"
        assert "星形" in star._repr_html_()
    assert [index for index, _ in cap.likeliest(2)] == first_two
    assert [chance for _, chance in cap.likeliest(2)] == [chance for _, chance in top]


def test_chosen_layers_come_in_order_of_execution_each_call_once(
    tiny: Model, noise: Tensor
) -> None:
    shares: list[float] = []
    assert list(hookviz.capture(tiny, noise, ["conv2", "conv1", "conv2"])) == ["conv1", "conv2"]
    assert list(hookviz.capture(tiny, noise, "conv2", progress=shares.append)) == ["conv2"]
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert list(hookviz.capture(tiny, noise, [])) == []
    cap = hookviz.capture(tiny, noise, ["relu", "conv1", "conv2"])
    assert list(cap) == ["conv1", "relu", "conv2", "relu#1"]
    assert torch.equal(cap["relu"].values, F.relu(cap["conv1"].values))
    assert torch.equal(cap["relu#1"].values, F.relu(cap["conv2"].values))
    assert [str(part.address) for part in cap.calls("relu")] == ["relu", "relu#1"]


def test_nested_outputs_are_addressed() -> None:
    class Split(nn.Module):
        def forward(self, images: Tensor) -> dict[str, object]:
            return {"low": images - 1, "pair": (images + 1, [images * 2])}

    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.split = Split()

        def forward(self, images: Tensor) -> object:
            return self.split(images)

    model, image = as_model(Nested()), random_input(3)
    cap = hookviz.capture(model, image, "split")
    assert list(cap) == ["split[low]", "split[pair][0]", "split[pair][1][0]"]
    assert torch.equal(cap["split[pair][1][0]"].values, image[0] * 2)
    with pytest.raises(hookviz.HookVizError, match=r"Say which part .*output='low'"):
        cap.predictions()
    with pytest.raises(hookviz.UnknownLayerError, match=r"split\[low\]"):
        cap["split"]


def test_what_is_written_over_is_copied_and_an_input_is_left_alone() -> None:
    class Overwriting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.same = nn.Conv2d(3, 4, 3), nn.Identity()

        def forward(self, images: Tensor) -> Tensor:
            found: Tensor = self.conv(images.sub_(1))
            self.same(images.repeat(1, 50, 1, 1)[:, :1])
            return F.relu_(found.view(1, -1)) + 1  # through a view

    model, image = as_model(seeded(Overwriting)), random_input(4)
    before = image.clone()
    cap = hookviz.capture(model, image, ["conv", "same"])
    assert torch.equal(cap["conv"].values, model.network.conv(image - 1)[0])  # type: ignore[operator]
    assert cap["conv"].values.min() < 0
    assert torch.equal(image, before)
    assert torch.equal(cap.input, before)
    assert cap["same"].values.untyped_storage().nbytes() == 16 * 16 * 4  # not of what it views


def test_the_pass_ends_at_the_last_wanted_layer_when_nothing_else_is_asked_for() -> None:
    armed: list[bool] = []

    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 2, 1)
            self.shared = nn.ReLU()
            self.late = nn.Conv2d(2, 2, 1)

        def forward(self, images: Tensor) -> Tensor:
            try:
                found: Tensor = self.shared(self.shared(self.first(images)))
            except Exception:  # noqa: BLE001 - networks do such things
                found = images
            if armed:
                message = "ran on past the wanted layer"
                raise RuntimeError(message)
            late: Tensor = self.late(found)
            return late

    model = as_model(seeded(Failing))
    hookviz.list_layers(model, input_shape=(3, 16, 16))
    armed.append(True)
    cap = hookviz.capture(model, random_input(6), ["shared"], logits=False)
    assert list(cap) == ["shared", "shared#1"]
    assert cap.logits is None
    with pytest.raises(hookviz.ModelError, match="ran on past"):
        hookviz.capture(model, random_input(6), ["first"])
    assert all_hooks(model) == 0


def raise_in_progress(error: BaseException) -> Callable[[float], None]:
    def progress(share: float) -> None:
        if share > 0.3:
            raise error

    return progress


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), StopException(), RerunException(RerunData()), ValueError("enough")],
    ids=lambda error: type(error).__name__,
)
def test_no_hook_is_left_when_a_run_is_broken_off(
    tiny: Model, noise: Tensor, error: BaseException
) -> None:
    with pytest.raises(type(error)) as caught:
        hookviz.capture(tiny, noise, progress=raise_in_progress(error))
    assert caught.value is error
    assert all_hooks(tiny) == 0
    assert tiny.network.training  # as it was given
    assert list(hookviz.capture(tiny, noise)) == ["conv1", "conv2"]


def test_eight_threads_with_their_own_images_get_their_own_captures() -> None:
    model, layer = hookviz.load_model("shapesnet"), "stem.first.conv"
    weight: Any = model.network.get_submodule(layer).weight
    barrier = threading.Barrier(8)

    def work(image: Tensor) -> None:
        with torch.no_grad():
            expected = F.conv2d(image, weight, stride=2, padding=3)[0]
        barrier.wait()
        for _ in range(20):
            assert torch.equal(hookviz.capture(model, image)[layer].values, expected)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [random_input(seed, side=32) for seed in range(8)]))
    assert all_hooks(model) == 0


def test_many_runs_leave_memory_flat(tiny: Model) -> None:
    image = random_input(0, side=64)  # conv1 puts out 64 KB: a leak would show as 26 MB

    def runs(count: int) -> tuple[int, int]:
        for _ in range(count):
            hookviz.capture(tiny, image, ["conv1"])
        gc.collect()
        return len(gc.get_objects()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    objects_before, peak_before = runs(100)
    objects_after, peak_after = runs(400)
    assert objects_after - objects_before < 100
    assert peak_after - peak_before < 10_000  # kilobytes


@pytest.fixture
def cache() -> ByteCache:
    return Budget(1_000_000).cache(1_000_000)


def test_another_layer_of_the_same_image_needs_no_pass(cache: ByteCache, noise: Tensor) -> None:
    model, passes = counting()
    first = hookviz.capture(model, noise, "inner.conv1", cache=cache)
    second = hookviz.capture(model, noise, "inner.conv2", cache=cache)
    assert (first.forward_passes, second.forward_passes, len(passes)) == (1, 0, 1)
    assert second.predictions() == first.predictions()
    fresh = hookviz.capture(model, noise, "inner.conv2")
    assert torch.equal(second["inner.conv2"].values, fresh["inner.conv2"].values)
    cap = hookviz.capture(model, noise, cache=cache)
    assert cap.logits is not None
    assert cache.used == sum(part.nbytes for part in cap.values()) + cap.logits.nbytes
    assert all(part.values.untyped_storage().nbytes() == part.nbytes for part in cap.activations)


def test_what_is_kept_can_be_asked_for_without_running(
    tiny: Model, noise: Tensor, cache: ByteCache
) -> None:
    made = inputs.prepare_input(tiny, noise)
    assert not engine.is_cached(tiny, made, "conv1", cache)
    engine.capture(tiny, made, "conv1", logits=False, cache=cache)
    assert engine.is_cached(tiny, made, ["conv1", "conv2"], cache, logits=False)
    assert not engine.is_cached(tiny, made, "conv1", cache)  # that pass kept no scores
    engine.capture(tiny, made, "conv1", cache=cache)
    assert engine.is_cached(tiny, made, "conv1", cache)
    assert engine.capture(tiny, made, "conv1", cache=cache).forward_passes == 0
    with pytest.raises(UnknownLayerError):
        engine.is_cached(tiny, made, "conv9", cache)


def test_other_images_weights_and_sizes_are_kept_apart(cache: ByteCache) -> None:
    one, other = as_model(seeded(Tiny)), as_model(Tiny())
    shown = picture(1)
    captures = [
        hookviz.capture(one, shown, cache=cache),
        hookviz.capture(one, picture(2), cache=cache),
        hookviz.capture(other, shown, cache=cache),
        hookviz.capture(one, shown, size=20, cache=cache),
        hookviz.capture(one, shown, whole=True, cache=cache),
    ]
    assert [cap.forward_passes for cap in captures] == [1] * 5
    assert hookviz.capture(one, shown, cache=cache).forward_passes == 0


def test_a_cache_without_room_keeps_the_wanted_layer_or_nothing(noise: Tensor) -> None:
    model, passes = counting()
    bytes_of_conv1, bytes_of_conv2 = 4 * 16 * 16 * 4, 6 * 7 * 7 * 4
    small = Budget(10_000).cache(bytes_of_conv2 + 100)
    assert bytes_of_conv1 > small.limit
    for _ in range(2):
        shown = hookviz.capture(model, noise, "inner.conv1", cache=small)
        assert shown["inner.conv1"].values.shape == (4, 16, 16)  # shown, though not kept
    assert len(passes) == 2
    hookviz.capture(model, noise, "inner.conv2", cache=small)
    hookviz.capture(model, noise, "inner.conv2", cache=small)
    assert len(passes) == 3
    assert small.used <= small.limit


def test_inputs_are_what_the_layers_were_given_before_they_wrote_over_it(
    tiny: Model, noise: Tensor
) -> None:
    network: Any = tiny.network
    with torch.no_grad():
        first = network.conv1(noise)
        second = network.conv2(first.relu())
    cache = Budget(1_000_000).cache(1_000_000)
    hookviz.capture(tiny, noise, cache=cache)
    found = hookviz.capture(tiny, noise, ["conv1", "relu", "head"], inputs=True, cache=cache)
    assert [str(each.address) for each in found.layer_inputs] == [
        *("conv1[0]", "relu[0]", "relu#1[0]", "head[0]"),
    ]
    assert torch.equal(found.inputs("conv1")[0].values, noise[0])
    assert torch.equal(found.inputs("relu")[0].values, first[0])
    assert torch.equal(found.inputs("relu")[1].values, second[0])
    assert torch.equal(found["conv1"].values, first[0])
    with pytest.raises(UnknownLayerError, match="'conv1'"):
        found.inputs("conv2")
    assert hookviz.capture(tiny, noise, "conv1").layer_inputs == ()
    assert all_hooks(tiny) == 0
