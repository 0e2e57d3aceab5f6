import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.drawing.grid import Grid
from hookviz.drawing.panels import GridPanel, TextPanel
from hookviz.lenses.contract.lens import LensResult
from hookviz.wording import number
from tests.codegen.script_cases import RESNET, SQUEEZENET, ScriptCase
from tests.networks import as_model, hook_count, plain_network, random_input, seeded

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"layer": "layer2.1.relu", "call": 2}, RESNET),
    ScriptCase({"layer": "layer2.1.relu", "call": 2, "change": "plus", "amount": 0.5}, RESNET),
    ScriptCase({"layer": "features.1"}, SQUEEZENET),
)


class Leaf(nn.Module):
    """A layer that computes what it is made with."""

    def __init__(self, compute: Callable[..., Any]) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.compute(*args, **kwargs)


class Around(nn.Module):
    """A conv layer, then whatever `use` does with the leaf and the conv's output."""

    def __init__(self, leaf: nn.Module, use: Callable[[nn.Module, Tensor], Any]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.leaf = leaf
        self.use = use

    def forward(self, images: Tensor) -> Any:
        features: Tensor = self.conv(images)
        return self.use(self.leaf, features)


def around(compute: Callable[..., Any], use: Callable[[nn.Module, Tensor], Any]) -> hookviz.Model:
    return as_model(seeded(lambda: Around(Leaf(compute), use)))


def look(model: hookviz.Model, layer: str = "leaf", side: int = 16, **chosen: Any) -> LensResult:
    return hookviz.run_lens("inputs", model, random_input(3, side), layer=layer, **chosen)


def grids(result: LensResult) -> list[Grid]:
    return [panel.grid for panel in result.panels if isinstance(panel, GridPanel)]


def text(result: LensResult) -> str:
    assert isinstance(result.panels[0], TextPanel)
    return result.panels[0].text


def rows(result: LensResult) -> dict[str, tuple[str | int | float, ...]]:
    table: Any = result.panels[-1]
    return {str(row[0]): row[1:] for row in table.rows}


@pytest.mark.parametrize("call", [1, 2])
def test_the_input_is_copied_before_an_in_place_layer_writes_over_it(
    tiny: hookviz.Model, call: int
) -> None:
    result = look(tiny, "relu", call=call)
    weights = dict(plain_network(tiny).named_parameters())
    values = F.conv2d(random_input(3), weights["conv1.weight"], weights["conv1.bias"], padding=1)
    if call == 2:
        values = F.conv2d(F.relu(values), weights["conv2.weight"], weights["conv2.bias"], stride=2)
    values = values.detach()
    torch.testing.assert_close(torch.tensor(result.values["input"]), values)
    torch.testing.assert_close(torch.tensor(result.values["output"]), F.relu(values))
    assert "It works in place" in text(result)
    low, *_, zeros = rows(result)["input"][1:]
    assert str(low).startswith("−")
    assert zeros == "0 %"
    share = float((values < 0).float().mean())
    assert f"{100 * share:.1f} % of the values come out changed" in text(result)
    assert rows(result)["output"][1] == "0"
    assert rows(result)["output"][4] == f"{100 * share:.1f} %"
    assert not hook_count(tiny.network)


def test_a_layer_without_weights_shares_its_colours(tiny: hookviz.Model) -> None:
    before, after = grids(look(tiny, "relu"))
    values = random_input(3)
    weights = dict(plain_network(tiny).named_parameters())
    values = F.conv2d(values, weights["conv1.weight"], weights["conv1.bias"], padding=1)[0]
    passed = (values > 0).numpy()
    np.testing.assert_array_equal(before.levels[passed], after.levels[passed])
    assert len(set(after.levels[~passed])) == 1
    assert before.limits.low[0] == -before.limits.high[0] == -float(values.abs().max())
    own = grids(look(tiny, "relu", scale="own"))[1]
    assert own.limits.low[0] == 0


def test_a_layer_with_weights_has_colours_of_its_own_on_each_side(tiny: hookviz.Model) -> None:
    before, after = grids(look(tiny, "conv1"))
    assert before.limits.high[0] == float(random_input(3).abs().max())
    assert after.limits.high[0] != before.limits.high[0]
    before, after = grids(look(tiny, "conv1", scale="shared"))
    assert after.limits.high[0] == before.limits.high[0]


def test_values_that_are_all_the_same_share_nothing() -> None:
    model = around(torch.zeros_like, lambda leaf, features: leaf(features))
    before, after = grids(look(model))
    assert "Every value of this layer is 0" in after.legend
    assert before.limits.high[0] > 0


def test_positive_values_run_from_the_lowest_to_the_highest_of_both() -> None:
    model = around(lambda x: F.max_pool2d(x, 2), lambda leaf, features: leaf(features.exp()))
    result = look(model)
    before, after = grids(result)
    low, high = result.values["input"].min(), result.values["input"].max()
    assert before.limits.low[0] == after.limits.low[0] == low
    assert before.limits.high[0] == after.limits.high[0] == high
    assert after.colormap.name == "viridis"


def test_several_inputs_and_some_that_are_no_tensors() -> None:
    def mix(first: Tensor, pair: list[Tensor], times: int, *, mode: str) -> tuple[Tensor, Tensor]:
        assert mode == "sum"
        return first + times * pair[0], pair[1]

    model = around(mix, lambda leaf, x: leaf(x, [x * 2, x[:, :1]], 3, mode="sum"))
    result = look(model)
    assert list(result.values) == ["input_0", "input_1_0", "input_1_1", "output_0", "output_1"]
    np.testing.assert_allclose(
        result.values["output_0"], 7 * result.values["input_0"], rtol=1e-5, atol=1e-6
    )
    assert "It is also given int, str, which can't be drawn." in text(result)
    assert [grid.shape[0] for grid in grids(result)] == [4, 4, 4, 1]
    assert rows(result)["input 1 1"][0] == "1×1×16×16"


@pytest.mark.parametrize(
    ("use", "shape", "said"),
    [
        (lambda leaf, x: leaf(x.mean((2, 3))), (4, 1, 1), "a vector, one cell per number"),
        (lambda leaf, x: leaf(x.mean()), (1, 1, 1), ""),
        (lambda leaf, x: leaf(x.flatten(2)), (1, 4, 256), "a row per place"),
        (lambda leaf, x: leaf(x[0]), (4, 16, 16), ""),
        (lambda leaf, x: leaf(x.repeat(5, 1, 1, 1)), (4, 16, 16), "the first of 5 in the batch"),
        (lambda leaf, x: leaf(x.unflatten(1, (2, 2))), (4, 16, 16), "one after the other"),
        (lambda leaf, x: leaf(x.half()), (4, 16, 16), ""),
        (lambda leaf, x: leaf(x > 0), (4, 16, 16), ""),
        (lambda leaf, x: leaf(torch.fft.fft2(x)), (4, 16, 16), ""),
    ],
)
def test_tensors_of_other_shapes_and_kinds(
    use: Callable[[nn.Module, Tensor], Any], shape: tuple[int, ...], said: str
) -> None:
    result = look(around(lambda x: x, use))
    assert [grid.shape for grid in grids(result)] == [shape] * 2
    assert all(said in panel.caption for panel in result.panels if isinstance(panel, GridPanel))
    assert "Every value comes out as it went in." in text(result)
    assert "in place" not in text(result)


def test_nan_is_left_out_of_the_numbers() -> None:
    model = around(torch.log, lambda leaf, x: leaf(x))
    row = rows(look(model))["output"]
    values = look(model).values["output"]
    assert np.isnan(values).any()
    assert float(str(row[3])) == pytest.approx(np.nanmax(values), rel=5e-3)


def test_where_there_is_nothing_to_draw_the_nearest_layer_is_named() -> None:
    model = around(str.upper, lambda leaf, x: (leaf("word"), x)[1])
    with pytest.raises(hookviz.HookVizError, match=r"neither takes in nor puts out .* conv does"):
        look(model)


def test_an_empty_tensor_is_a_row_and_no_picture() -> None:
    model = around(lambda x: x[:, :0], lambda leaf, x: leaf(x))
    result = look(model)
    assert len(grids(result)) == 1
    assert rows(result)["output"] == ("1×0×16×16", "–", "–", "–", "–")


@pytest.mark.parametrize(("change", "amount"), [("plus", 1.0), ("times", -2.0)])
@pytest.mark.parametrize("call", [1, 2])
def test_an_input_is_changed_as_a_pre_hook_changes_it(
    tiny: hookviz.Model, change: str, amount: float, call: int
) -> None:
    result = hookviz.run_lens(
        *("inputs", tiny, random_input(3)),
        layer="relu",
        call=call,
        change=change,
        amount=amount,
    )
    network, calls, given = copy.deepcopy(tiny.network), [], []

    def hand_over(_module: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
        calls.append(inputs[0].clone())
        changed = inputs[0] + amount if change == "plus" else inputs[0] * amount
        given.append(changed.clone())
        return changed if len(calls) == call else inputs[0]

    network.get_submodule("relu").register_forward_pre_hook(hand_over)
    with torch.no_grad():
        scores = network(random_input(3)).softmax(1)[0]
        plain = tiny.network(random_input(3)).softmax(1)[0]
    torch.testing.assert_close(torch.tensor(result.values["input"]), given[call - 1])
    torch.testing.assert_close(torch.tensor(result.values["output"]), F.relu(given[call - 1]))
    note: Any = result.panels[1]
    moved = (F.relu(given[call - 1]) - F.relu(calls[call - 1])).abs()
    assert f"by {number(float(moved.max()))} at most" in note.text
    assert f"({number(100 * float(scores.max()))} %); without" in note.text
    assert f"({number(100 * float(plain.max()))} %)." in note.text


def test_a_call_that_does_not_take_place(tiny: hookviz.Model) -> None:
    with pytest.raises(hookviz.SettingError, match="relu has no call 3: it runs 2 times"):
        look(tiny, "relu", call=3)


def test_a_block_takes_in_and_puts_out_what_hooks_on_it_see() -> None:
    model = hookviz.load_model("shapesnet")
    model_input = hookviz.prepare_input(model, random_input(3, 64))
    seen: list[Tensor] = []
    block = model.network.get_submodule("stage2")
    handle = block.register_forward_hook(
        lambda _, inputs, output: seen.extend((inputs[0].clone(), output.clone()))
    )
    with torch.no_grad():
        model.network(model_input.tensor)
    handle.remove()
    result = hookviz.run_lens("inputs", model, model_input, layer="stage2")
    np.testing.assert_array_equal(result.values["input"], seen[0])
    np.testing.assert_array_equal(result.values["output"], seen[1])
