import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import hookviz
from hookviz.drawing.panels import ChartPanel, TablePanel, TextPanel
from hookviz.types import Model
from tests.codegen.script_cases import RESNET, SHAPESNET, SQUEEZENET, ScriptCase
from tests.networks import Tiny, as_model, random_input, seeded

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"clipping": "by value", "limit": 1e-3, "target": 1}, SQUEEZENET),
    ScriptCase({"clipping": "by value", "limit": 1e-4, "at": "layer2.0.conv1"}, RESNET),
    ScriptCase({"clipping": "by norm", "limit": 1e-2, "at": "stage2.first.conv"}, SHAPESNET),
    ScriptCase(
        {"clipping": "by value", "limit": 1e-4, "at": "stage2.second.conv", "at_side": "inputs"},
        SHAPESNET,
    ),
    ScriptCase({"clipping": "by norm", "limit": 1e-2}, SHAPESNET, 1e-6),  # torch's is in float32
)


class InPlace(nn.Module):
    """Overwrites what autograd could want, by functions and by a module."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.conv = nn.Conv2d(6, 6, 3, padding=1, groups=2)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        identity = F.relu(self.norm(self.stem(images)), inplace=True)
        found = self.conv(self.conv(identity))  # twice
        found += identity
        scores: Tensor = self.head(self.relu(found).mean((2, 3)))
        return scores


def trained(network: nn.Module, image: Tensor, target: int) -> nn.Module:
    """A copy with the gradients of one step in ``grad``, as PyTorch's own backward has them."""
    copied = copy.deepcopy(network).requires_grad_(True).eval()
    loss = F.cross_entropy(copied(image), torch.tensor([target]))
    loss.backward()  # type: ignore[no-untyped-call]
    return copied


def gradients(network: nn.Module, names: list[str]) -> list[np.ndarray[Any, Any]]:
    found = []
    for name in names:
        gradient: Any = network.get_parameter(f"{name}.weight").grad
        found.append(gradient.numpy())
    return found


@pytest.mark.parametrize("build", [Tiny, InPlace])
def test_the_gradients_are_those_of_a_backward_pass(build: type[nn.Module]) -> None:
    network, image = seeded(build).eval(), random_input(4)
    result = hookviz.run_lens("gradient-flow", as_model(network), image, target=3)
    table: Any = result.panels[-1]
    names = [str(row[0]) for row in table.rows]
    assert names == (["conv1", "conv2", "head"] if build is Tiny else ["stem", "conv", "head"])
    expected = gradients(trained(network, image, 3), names)
    np.testing.assert_allclose(
        result.values["norm"], [np.linalg.norm(each) for each in expected], rtol=1e-5
    )
    np.testing.assert_allclose(
        result.values["largest"], [np.abs(each).max() for each in expected], rtol=1e-5
    )
    np.testing.assert_allclose(result.values["zeros"], [(each == 0).mean() for each in expected])
    sizes = [float(network.get_parameter(f"{name}.weight").detach().norm()) for name in names]
    np.testing.assert_allclose(result.values["strength"] * sizes, result.values["norm"], rtol=1e-5)
    with torch.no_grad():
        chance = network(image).softmax(1)[0, 3]
    assert result.values["loss"] == pytest.approx(-np.log(float(chance)), rel=1e-5)


@pytest.mark.parametrize("limit", [1e-3, 0.05, 100])
@pytest.mark.parametrize("clipping", ["by norm", "by value"])
def test_clipping_is_pytorchs(tiny: Model, noise: Tensor, clipping: str, limit: float) -> None:
    result = hookviz.run_lens(
        "gradient-flow", tiny, noise, target=1, clipping=clipping, limit=limit
    )
    copied = trained(tiny.network, noise, 1)
    if clipping == "by norm":
        total = nn.utils.clip_grad_norm_(copied.parameters(), limit)
        assert result.values["total_norm"] == pytest.approx(float(total), rel=1e-5)
    else:
        nn.utils.clip_grad_value_(copied.parameters(), limit)
    expected = gradients(copied, ["conv1", "conv2", "head"])
    np.testing.assert_allclose(
        result.values["norm_clipped"], [np.linalg.norm(each) for each in expected], rtol=1e-5
    )
    np.testing.assert_allclose(
        result.values["largest_clipped"], [np.abs(each).max() for each in expected], rtol=1e-5
    )
    chart = next(panel for panel in result.panels if isinstance(panel, ChartPanel))
    np.testing.assert_array_equal(chart.series["‖g‖"], result.values["norm"])
    np.testing.assert_array_equal(chart.series["‖g‖ clipped"], result.values["norm_clipped"])
    assert chart.log


def test_clipping_says_how_much_it_changes(tiny: Model, noise: Tensor) -> None:
    def says(clipping: str, limit: float) -> str:
        panel: Any = hookviz.run_lens(
            "gradient-flow", tiny, noise, target=1, clipping=clipping, limit=limit
        ).panels[2]
        return str(panel.text)

    copied = trained(tiny.network, noise, 1)
    every = torch.cat(
        [each.grad.flatten() for each in copied.parameters() if each.grad is not None]
    )
    cut = int((every.abs() > 0.05).sum())
    assert 0 < cut < len(every)
    assert f"changes {cut:,} of {len(every):,} numbers" in says("by value", 0.05)
    assert "changes nothing" in says("by norm", 100)
    assert "multiplies every gradient by 0.0" in says("by norm", 0.01)


@pytest.mark.parametrize("limit", [1e-3, 0.05, 100])
@pytest.mark.parametrize("clipping", ["by norm", "by value"])
@pytest.mark.parametrize(
    ("build", "at", "side", "upstream"),
    [
        (Tiny, "conv2", "outputs", ["conv1", "conv2"]),
        (Tiny, "relu", "outputs", ["conv1", "conv2"]),  # it runs twice
        (Tiny, "conv2", "inputs", ["conv1"]),
        (Tiny, "head", "inputs", ["conv1", "conv2"]),
        (InPlace, "conv", "outputs", ["stem", "conv"]),
        (InPlace, "norm", "outputs", ["stem"]),
    ],
)
def test_clipping_at_a_layer_is_a_tensor_hook_s(  # noqa: PLR0917 - a case has four parts
    build: type[nn.Module], at: str, side: str, upstream: list[str], clipping: str, limit: float
) -> None:
    network, image = seeded(build).eval(), random_input(4)
    chosen: dict[str, Any] = {"target": 3, "clipping": clipping, "limit": limit, "at": at}
    result = hookviz.run_lens("gradient-flow", as_model(network), image, **chosen, at_side=side)
    names = ["conv1", "conv2", "head"] if build is Tiny else ["stem", "conv", "head"]
    before = gradients(trained(network, image, 3), names)
    seen: list[Tensor] = []

    def clip(gradient: Tensor) -> Tensor:
        seen.append(gradient)
        if clipping == "by value":
            return gradient.clamp(-limit, limit)
        return gradient * min(1.0, limit / (float(gradient.norm()) + 1e-6))

    hooked = copy.deepcopy(network)
    for module in hooked.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
    if side == "inputs":
        hooked.get_submodule(at).register_forward_pre_hook(
            lambda _module, inputs: inputs[0].register_hook(clip) and None
        )
    else:
        hooked.get_submodule(at).register_forward_hook(
            lambda _module, _inputs, output: output.register_hook(clip) and None
        )
    after = gradients(trained(hooked, image, 3), names)
    values = result.values
    norms = [np.linalg.norm(each) for each in after]
    np.testing.assert_allclose(values["norm_clipped"], norms, rtol=1e-4)
    np.testing.assert_allclose(values["norm"], [np.linalg.norm(g) for g in before], rtol=1e-4)
    # The second call's gradient comes first; the first one's is that of a clipped one by then.
    whole = float(torch.cat([gradient.flatten() for gradient in seen]).norm())
    assert values["norm_at"] == pytest.approx(whole, rel=1e-4)
    differ = [name for name, a, b in zip(names, before, after, strict=True) if not (a == b).all()]
    changed = [name for name, each in zip(names, values["changed"], strict=True) if each]
    assert changed == differ
    says: Any = result.panels[2]
    assert side == "outputs" or f"At the input of {at} the gradient's norm is" in says.text
    if limit == 1e-3:
        assert changed == upstream
        assert f"changes the gradients of {len(upstream)} of 3 layers, {upstream[0]}" in says.text
    if limit == 100:
        assert changed == []
        assert "changes nothing there" in says.text
    table: Any = result.panels[-1]
    assert [row[0] for row in table.rows if row[-2] == "changed"] == changed


def test_an_image_needs_no_gradient_to_clip(tiny: Model, noise: Tensor) -> None:
    result = hookviz.run_lens(
        *("gradient-flow", tiny, noise),
        target=0,
        clipping="by value",
        at="conv1",
        at_side="inputs",
    )
    assert isinstance(result.panels[2], TextPanel)
    assert "None in its grad_input" in result.panels[2].text
    assert not result.values["changed"].any()
    assert result.values["norm_at"] == 0


def deep(activation: type[nn.Module], count: int = 12) -> nn.Module:
    """Convolutions that keep lengths, each followed by an activation."""
    layers: list[nn.Module] = [nn.Conv2d(3, 4, 1)]
    for _ in range(count):
        layers += [activation(), nn.Conv2d(4, 4, 1)]
        nn.init.orthogonal_(layers[-1].weight)  # type: ignore[arg-type]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.mark.parametrize(
    ("activation", "verdict"),
    [(nn.Sigmoid, "vanishing"), (nn.Identity, "")],  # a sigmoid's slope is 1/4 at most
)
def test_deep_networks_vanish_or_do_not(
    noise: Tensor, activation: type[nn.Module], verdict: str
) -> None:
    network = seeded(lambda: deep(activation))
    result = hookviz.run_lens("gradient-flow", as_model(network), noise, target=0)
    table: Any = result.panels[-1]
    found = [row[-1] for row in table.rows]
    if not verdict:
        assert set(found) == {"fine"}
        return
    strength = result.values["strength"]
    assert strength[0] < 1e-4 * strength[-1]
    assert found[0] == verdict
    assert found[-1] == "fine"
    assert found == sorted(found, reverse=True)  # all of the first ones
    says: Any = result.panels[1]
    assert f"vanishes in {found.count(verdict)} of 13 layers: 0, 2" in says.text
    assert says.tone == "bad"


def test_a_gradient_that_explodes_is_named(noise: Tensor) -> None:
    network = seeded(Tiny)
    with torch.no_grad():
        network.conv1.weight *= 1e-4
        network.conv2.weight *= 1e2
    result = hookviz.run_lens("gradient-flow", as_model(network), noise, target=2)
    says, table = result.panels[1], result.panels[-1]
    assert isinstance(says, TextPanel)
    assert isinstance(table, TablePanel)
    assert [row[-1] for row in table.rows] == ["exploding", "fine", "fine"]
    assert "explodes in 1 of 3 layers: conv1." in says.text


def test_a_dead_layer_has_no_gradient_and_a_nan_explodes(noise: Tensor) -> None:
    network = seeded(Tiny)
    with torch.no_grad():
        network.conv2.bias.fill_(-1e9)  # type: ignore[union-attr]
        network.conv1.weight.zero_()  # 0 / 0 is no strength, and vanishes too
    result = hookviz.run_lens("gradient-flow", as_model(network), noise, target=2)
    assert result.values["zeros"].tolist() == [1, 1, 1]
    says: Any = result.panels[1]
    assert "vanishes in 3 of 3" in says.text
    with torch.no_grad():
        network.head.weight[0, 0] = torch.nan
    result = hookviz.run_lens("gradient-flow", as_model(network), noise, target=2)
    table: Any = result.panels[-1]
    assert "exploding" in {row[-1] for row in table.rows}


def test_a_network_that_cuts_its_graph_is_refused(noise: Tensor) -> None:
    class Cut(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images).detach()

    with pytest.raises(hookviz.ModelError, match="can't be differentiated"):
        hookviz.run_lens("gradient-flow", as_model(seeded(Cut)), noise)


def test_weights_that_have_no_part_are_left_out_and_have_no_gradient_to_clip(
    noise: Tensor,
) -> None:
    class Aside(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            self.conv2(self.conv1(images))
            scores: Tensor = self.head(images.mean((1, 2))[:, :6])
            return scores

    chosen: dict[str, Any] = {"target": 0, "clipping": "by value", "at": "conv1"}
    result = hookviz.run_lens("gradient-flow", as_model(seeded(Aside)), noise, **chosen)
    assert len(result.values["norm"]) == 1
    assert isinstance(result.panels[2], TextPanel)
    assert "No gradient comes to what conv1 puts out" in result.panels[2].text
