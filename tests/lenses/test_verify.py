import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn

import hookviz
from hookviz import Preprocess
from hookviz.capturing.cache import Budget
from hookviz.drawing.panels import ChartPanel, TextPanel
from hookviz.lenses.contract.lens import LensResult
from tests.codegen.script_cases import CONVNEXT, ScriptCase
from tests.networks import as_model, hook_count, random_input, seeded

# In double precision too a sum's order may depend on where the numbers lie in memory.
SCRIPTS = (ScriptCase(rounding=1e-8), ScriptCase(networks=CONVNEXT, rounding=1e-8))


class Overwriting(nn.Module):
    """Writes over what its conv layer put out, in a way that no module tells of."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.act = nn.LeakyReLU(0.1, inplace=True)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        features = F.relu(self.conv(images), inplace=True)
        features += 1
        scores: Tensor = self.head(self.act(self.norm(features)).mean((2, 3)))
        return scores


class Noise(nn.Module):
    def forward(self, batch: Tensor) -> Tensor:
        return batch + torch.rand_like(batch)


class Counting(nn.Module):
    times = 0

    def forward(self, batch: Tensor) -> Tensor:
        Counting.times += 1
        return batch * self.times


class Scaled(nn.Module):
    def forward(self, batch: Tensor, shift: float = 0.0, scale: float = 1.0) -> Tensor:
        return batch * scale + shift


class ByName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)
        self.scaled = Scaled()

    def forward(self, images: Tensor) -> Any:
        return self.scaled(self.conv(images), scale=3.0)


def look(network: nn.Module | hookviz.Model, side: int = 16, **options: Any) -> LensResult:
    model = network if isinstance(network, hookviz.Model) else as_model(network)
    return hookviz.run_lens("verify", model, options.pop("image", random_input(5, side)), **options)


def verdict(result: LensResult) -> TextPanel:
    assert isinstance(result.panels[0], TextPanel)
    return result.panels[0]


def rows(result: LensResult) -> dict[str, tuple[str | int | float, ...]]:
    table: Any = result.panels[-1]
    return {str(row[0]): row[1:] for row in table.rows}


def chain(*modules: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), *modules)


def test_every_layer_agrees(tiny: hookviz.Model) -> None:
    result = look(tiny)
    assert verdict(result).tone == "good"
    numbers = 4 * 256 + 6 * 49 + 4 * 256 + 6 * 49 + 5
    assert verdict(result).text.startswith("4 of 4 layers agree exactly. 2,641 numbers")
    assert numbers == 2641 == result.values["compared"].sum()
    assert result.values["agrees"].all()
    assert not result.values["difference"].any()
    assert set(rows(result)) == {"conv1", "relu", "conv2", "head"}
    assert not hook_count(tiny.network)


def test_what_corrupts_a_naive_record_is_no_matter() -> None:
    network = seeded(Overwriting).eval()
    naive: list[tuple[Tensor, Tensor]] = []
    handle = network.conv.register_forward_hook(
        lambda module, batch, output: naive.append((output, output.clone()))
    )
    with torch.no_grad():
        network(random_input(5))
    handle.remove()
    assert not torch.equal(*naive[0])  # held by reference, it is another tensor by now
    result = look(network)
    assert verdict(result).text.startswith("4 of 4 layers agree exactly.")


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (Noise(), r"1 \(Noise\) puts out other numbers each time: it is random"),
        (Counting(), r"1 \(Counting\) puts out other numbers each time"),
    ],
)
def test_a_layer_that_does_not_reproduce_is_named(module: nn.Module, why: str) -> None:
    result = look(chain(module, nn.ReLU()))
    assert verdict(result).tone == "bad"
    assert "2 of 3 layers agree exactly, and 1 does not agree" in verdict(result).text
    assert re.search(why, verdict(result).text)
    assert result.values["agrees"].tolist() == [True, False, True]
    assert [row[-1] for row in rows(result).values()] == ["exact", "differs", "exact"]


def test_a_record_that_cannot_be_made_again_is_told_from_chance() -> None:
    class FirstTime(nn.Module):
        calls = 0

        def forward(self, batch: Tensor) -> Tensor:
            FirstTime.calls += 1
            batch.mul_(2)  # in place, so each call needs a copy of its own
            return batch + 1 if FirstTime.calls == 1 else batch

    class Begin(nn.Module):
        def forward(self, batch: Tensor) -> Tensor:
            FirstTime.calls = 0
            return batch

    result = look(nn.Sequential(Begin(), FirstTime(), nn.ReLU()))
    assert "1 (FirstTime) puts out the same again for this input, but not what was recorded" in (
        verdict(result).text
    )


def test_a_conv_layer_that_computes_something_else_is_found_in_double_precision() -> None:
    conv = seeded(lambda: nn.Conv2d(3, 4, 3))
    plain = conv._conv_forward
    conv._conv_forward = lambda *given: plain(*given) * 1.001  # type: ignore[method-assign]
    result = look(nn.Sequential(conv, nn.ReLU()))
    assert "0 (Conv2d) is further from the exact sums than rounding explains" in (
        verdict(result).text
    )
    assert result.values["relative"][0] == pytest.approx(1e-3, rel=0.02)
    assert result.values["difference"][0] == 0


def test_a_layer_with_a_hook_of_somebody_else_is_compared_with_the_record_alone() -> None:
    network, calls = nn.Sequential(seeded(lambda: nn.Conv2d(3, 4, 3)), nn.ReLU()), []

    def theirs(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        calls.append(1)
        return output * 1.001

    network[0].register_forward_hook(theirs)
    model = as_model(network)
    hookviz.capture(model, random_input(5))
    calls.clear()
    result = look(model)
    assert [row[-1] for row in rows(result).values()] == ["not checked", "exact"]
    assert result.values["agrees"].all()
    assert len(calls) == 2  # of the record and of the pass that is checked


@pytest.mark.parametrize("train", [False, True])
def test_a_layer_is_run_again_apart_from_the_pass(train: bool) -> None:
    """Random layers behind it draw what they drew in the record, and statistics stay."""
    network = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Conv2d(4, 2, 3)
        )
    )
    before = {name: each.clone() for name, each in network.state_dict().items()}
    result = look(hookviz.wrap(network, Preprocess(16, 16), train=train))
    assert result.values["agrees"].tolist() == [True, True, not train, True]
    assert all(torch.equal(each, before[name]) for name, each in network.state_dict().items())
    assert network.training


def test_a_wrong_record_is_found(tiny: hookviz.Model) -> None:
    cache = Budget(1 << 20).cache(1 << 20)
    held = hookviz.capture(tiny, random_input(5), cache=cache)
    assert verdict(look(tiny, cache=cache)).tone == "good"
    held["conv2"].values[3, 2, 1] += 0.5
    result = look(tiny, cache=cache)
    assert "conv2 (Conv2d) puts out something else than what was recorded of it" in (
        verdict(result).text
    )
    assert rows(result)["conv2"][2] == "0.500"


def test_the_rounding_error_is_that_of_a_sum_in_numpy(tiny: hookviz.Model) -> None:
    image = random_input(5)
    result = look(tiny, image=image)
    weight, bias = (
        tiny.network.get_parameter(f"conv1.{name}").detach().double().numpy()
        for name in ("weight", "bias")
    )
    padded = np.pad(image[0].double().numpy(), ((0, 0), (1, 1), (1, 1)))
    patches = sliding_window_view(padded, (3, 3), axis=(1, 2))
    exact = np.einsum("cyxij,kcij->kyx", patches, weight) + bias[:, None, None]
    ours = hookviz.capture(tiny, image, "conv1")["conv1"].values.numpy()
    expected = np.abs(ours - exact).max() / np.abs(exact).max()
    index = list(rows(result)).index("conv1")
    assert result.values["relative"][index] == pytest.approx(expected, rel=1e-6)
    assert 0 < expected < 1e-6
    chart = next(panel for panel in result.panels if isinstance(panel, ChartPanel))
    assert set(chart.labels) == {"conv1", "conv2", "head"}


@pytest.mark.parametrize(
    "build",
    [
        lambda: nn.Conv2d(3, 4, 3, padding="same", dilation=2),
        lambda: nn.Conv2d(3, 4, (2, 3), padding=(1, 2), stride=2, padding_mode="reflect"),
        lambda: nn.Conv2d(3, 4, 4, padding="same", padding_mode="circular", bias=False),
        lambda: nn.Conv2d(3, 6, 3, padding=2, padding_mode="replicate", groups=3),
        lambda: nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3)),
        lambda: nn.Linear(16, 7, bias=False),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(16, 7)),
    ],
)
def test_every_kind_of_sum_is_close_in_double_precision(build: Callable[[], nn.Module]) -> None:
    result = look(nn.Sequential(seeded(build)))
    assert verdict(result).tone == "good"
    index = list(rows(result)).index("0")
    assert 1e-9 < result.values["relative"][index] < 1e-6


@pytest.mark.parametrize(
    "module",
    [
        nn.ConvTranspose2d(3, 4, 3),
        nn.MaxPool2d(2, return_indices=True),
        nn.Softmax(1),
        nn.Dropout(0.5),
        nn.Identity(),
        nn.GroupNorm(1, 3),
    ],
)
def test_other_layers_are_only_called_again(module: nn.Module) -> None:
    result = look(nn.Sequential(module))
    assert verdict(result).text.startswith("1 of 1 layers agree exactly.")
    assert np.isnan(result.values["relative"]).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions(dtype: torch.dtype) -> None:
    result = look(seeded(Overwriting).to(dtype))
    assert verdict(result).tone == "good"
    assert result.values["relative"][0] < (1e-2 if dtype == torch.bfloat16 else 1e-15)


def test_sums_that_cancel_out_and_a_bias_far_above_them_are_no_false_alarm() -> None:
    conv = nn.Conv2d(3, 2, 3, bias=False)
    with torch.no_grad():
        conv.weight -= conv.weight.mean((1, 2, 3), keepdim=True)
    result = look(nn.Sequential(conv), image=torch.full((1, 3, 16, 16), 0.3))
    assert verdict(result).tone == "good"
    assert result.values["relative"][0] > 1e-5
    conv = seeded(lambda: nn.Conv2d(3, 2, 3))
    with torch.no_grad():
        conv.bias.fill_(1e7)  # type: ignore[union-attr]
    assert verdict(look(nn.Sequential(conv))).tone == "good"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
def test_numbers_that_are_none_agree_with_each_other(value: float) -> None:
    conv = nn.Conv2d(3, 2, 1)
    with torch.no_grad():
        conv.weight[0, 0, 0, 0] = value
        conv.weight[0, 1:] = 0
    image = torch.full((1, 3, 4, 4), 2.0)
    result = look(nn.Sequential(conv), image=image)
    shown = hookviz.capture(as_model(nn.Sequential(conv)), image)["0"].values
    assert not shown.isfinite().all()
    assert verdict(result).text.startswith("1 of 1 layers agree exactly.")


def test_arguments_given_by_name_are_given_by_name_again() -> None:
    result = look(ByName())
    assert verdict(result).text.startswith("2 of 2 layers agree exactly.")
    assert rows(result)["scaled"][-1] == "exact"


def test_a_layer_that_fails_the_second_time_is_noted() -> None:
    class Once(nn.Module):
        def forward(self, batch: Tensor) -> Tensor:
            if seen:
                seen.append(1)
            if len(seen) > 2:
                raise ValueError("only once")
            return batch

    seen: list[int] = []
    model = as_model(nn.Sequential(nn.Identity(), Once(), nn.ReLU()))
    hookviz.capture(model, random_input(0))
    seen.append(1)  # and from now on it counts
    result = hookviz.run_lens("verify", model, random_input(0))
    note: Any = result.panels[1]
    assert note.text.startswith("Not checked: 1 (Once) can't be called again: only once")


def test_where_nothing_can_be_checked_it_says_so() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Linear(2, 2)

        def forward(self, images: Tensor) -> Tensor:
            return images

    with pytest.raises(hookviz.HookVizError, match="No layer of Bare can be checked"):
        look(Bare())


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "convnext_tiny"])
def test_models_of_the_catalog_agree(name: str) -> None:
    result = look(hookviz.load_model(name, "random"), side=64)
    count = len(result.values["agrees"])
    assert verdict(result).text.startswith(f"{count} of {count} layers agree exactly")
    assert np.nanmax(result.values["relative"]) < 1e-5
