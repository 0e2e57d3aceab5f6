"""Measurements as functions: equal to plain passes with hooks, and to what the lenses show."""

import io
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from torch import nn

import hookviz
from hookviz.errors import SettingError
from hookviz.images.samples import samples
from tests.networks import seeded

STAR = next(each.path for each in samples() if each.name == "star")
LAYER = "stage2.first.conv"


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def test_channels_are_ablated_as_a_plain_hook_does_it(shapes: hookviz.Model) -> None:
    given = hookviz.prepare_input(shapes, STAR)
    effects = hookviz.ablate_channels(shapes, STAR, layer=LAYER, target="star")
    assert effects.layer == LAYER
    layer = shapes.network.get_submodule(LAYER)
    star = shapes.categories.index("star")

    def score_without(channel: int) -> tuple[float, float]:
        def zero(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
            output = output.clone()
            output[:, channel] = 0
            return output

        handle = layer.register_forward_hook(zero)
        try:
            with torch.no_grad():
                scores = shapes.network(given.tensor)[0]
        finally:
            handle.remove()
        return float(scores[star]), float(scores.softmax(0)[star])

    assert effects.probability is not None
    assert effects.probability_changes is not None
    for channel in (0, 5, int(effects.score_changes.argmin())):
        score, probability = score_without(channel)
        assert effects.score + effects.score_changes[channel] == pytest.approx(score, abs=1e-3)
        sum_of_shares = effects.probability + effects.probability_changes[channel]
        assert sum_of_shares == pytest.approx(probability, abs=1e-4)


def test_scores_without_probabilities_have_none() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 5)).eval()
    effects = hookviz.ablate_channels(network, torch.rand(3, 8, 8), target=2)
    assert effects.score_changes.shape == (4,)
    assert (effects.probability, effects.probability_changes) == (None, None)


def test_health_counts_what_is_broken(shapes: hookviz.Model) -> None:
    first = nn.Conv2d(3, 4, 3)
    network = nn.Sequential(first, nn.ReLU(), nn.Conv2d(4, 2, 3)).eval()
    assert first.bias is not None
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.1)
        first.weight[2] = float("nan")
        first.weight[1].zero_()
        first.bias[1] = -1
    health = hookviz.network_health(network, torch.rand(3, 8, 8), layer="1")
    assert health.first_bad is not None
    assert health.first_bad.address.layer == "0"
    assert health.first_bad.nan == 36
    assert [each.dead for each in health.outputs[:2]] == [1, 1]  # channel 1 is −1, and then 0
    assert health.values["1"].size == 4 * 36
    assert hookviz.network_health(shapes, STAR).first_bad is None


def test_gradients_are_those_of_a_plain_training_step(shapes: hookviz.Model) -> None:
    given = hookviz.prepare_input(shapes, STAR)
    gradients = hookviz.gradient_flow(shapes, STAR, target="circle")
    weight = shapes.network.get_parameter(f"{LAYER}.weight")
    was, weight.requires_grad = weight.requires_grad, True
    try:
        scores = shapes.network(given.tensor.clone())
        loss = nn.functional.cross_entropy(
            scores, torch.tensor([shapes.categories.index("circle")])
        )
        (expected,) = torch.autograd.grad(loss, [weight])
        loss = loss.detach()
    finally:
        weight.requires_grad = was
    assert gradients.loss == pytest.approx(float(loss), rel=1e-5)
    torch.testing.assert_close(gradients.by_layer[LAYER], expected, rtol=1e-3, atol=1e-5)


def test_options_that_a_measurement_has_not_are_refused(shapes: hookviz.Model) -> None:
    with pytest.raises(SettingError, match=r"no option called 'target'.*progress, size, whole"):
        hookviz.network_health(shapes, STAR, target=1)  # type: ignore[call-arg]
    with pytest.raises(hookviz.HookVizError, match="no class"):
        hookviz.gradient_flow(shapes, STAR, target="hexagon of tea")
    assert np.isfinite(hookviz.gradient_flow(shapes, STAR).norms).all()


TYPED_FUNCTIONS = {
    "ablate": ("edit", "ablate_channels"),
    "across-images": ("channel_maps",),
    "attention": ("attention",),
    "channels-that-matter": ("ablate_channels",),
    "dream": ("dream",),
    "effective-receptive-field": ("effective_receptive_field",),
    "embedding": ("extract_features",),
    "grad-cam": ("grad_cam",),
    "gradient-flow": ("gradient_flow",),
    "gradients": ("layer_gradient",),
    "health": ("network_health",),
    "inputs": ("capture",),
    "integrated-gradients": ("integrated_gradients",),
    "inversion": ("invert",),
    "kernels": ("conv_kernels",),
    "maximize": ("maximize_activation",),
    "occlusion": ("occlusion",),
    "patching": ("patch",),
    "prune-weights": ("prune", "remove_pruned_channels"),
    "responds-here": ("region_selectivity",),
    "saliency": ("saliency",),
    "segmentation": ("segmentation_maps",),
    "summary": ("list_layers",),
    "toaster": ("smallest_change",),
    "trace": ("trace_execution",),
    "verify": ("verify",),
}
"""Where the numbers of each lens are in Python."""


def test_every_lens_has_a_typed_function() -> None:
    assert set(TYPED_FUNCTIONS) == {lens.slug for lens in hookviz.list_lenses()}
    assert set(sum(TYPED_FUNCTIONS.values(), ())) <= set(hookviz.__all__)


class Branching(nn.Module):
    """Two convolutions whose outputs are added."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        values = self.first(images)
        scores: torch.Tensor = self.head((values + self.second(values)).mean((2, 3)))
        return scores


def test_kernels_are_the_layers_weights_and_twins_are_listed() -> None:
    network = seeded(Branching)
    with torch.no_grad():
        network.second.weight[3] = -2 * network.second.weight[1]
    kernels = hookviz.conv_kernels(network, layer="second")
    weights = network.second.weight.detach().numpy()
    np.testing.assert_array_equal(kernels.kernels, weights)
    np.testing.assert_allclose(kernels.norms, np.sqrt(np.square(weights).sum((1, 2, 3))), rtol=1e-6)
    assert kernels.pairs.tolist() == [[1, 3]]
    assert kernels.cosines == pytest.approx([-1])
    assert kernels.duplicate_count == 1
    np.testing.assert_array_equal(kernels.tiles(2), weights[:, 2])
    np.testing.assert_allclose(
        kernels.tiles(None), np.sqrt(np.square(weights).sum(1)), rtol=1e-5, atol=1e-7
    )
    assert hookviz.conv_kernels(network, layer="second", threshold=1.0).duplicate_count <= 1
    with pytest.raises(SettingError, match="channel=4: a kernel of second has 4 input channels"):
        kernels.figure(4)


def test_a_region_is_compared_with_the_rest_of_each_map() -> None:
    network, image = seeded(Branching), torch.rand(1, 3, 8, 8)
    result = hookviz.region_selectivity(network, image, region="rect:0,0,0.5,1", layer="first")
    with torch.no_grad():
        maps = network.first(image)[0].double().numpy()
    inside, outside = maps[:, :, :4].mean((1, 2)), maps[:, :, 4:].mean((1, 2))
    score = (inside - outside) / maps.std((1, 2))
    np.testing.assert_allclose(result.inside, inside, rtol=1e-5)
    np.testing.assert_allclose(result.outside, outside, rtol=1e-5)
    np.testing.assert_allclose(result.score, score, rtol=1e-5)
    assert result.ranking.tolist() == np.argsort(-score).tolist()
    assert result.weights.sum() == 32


@pytest.mark.parametrize("asked", ["class", "channel", "cell"])
def test_a_gradient_is_autograds_at_the_layers_output(asked: str) -> None:
    network, image = seeded(Branching), torch.rand(1, 3, 8, 8)
    values = network.first(image).detach().requires_grad_()
    other = network.second(values)
    scores = network.head((values + other).mean((2, 3)))
    target, arguments = {
        "class": (scores[0, 2], {"target": 2}),
        "channel": (other[0, 1].mean(), {"target_layer": "second", "channel": 1}),
        "cell": (
            other[0, 1, 3, 5],
            {"target_layer": "second", "channel": 1, "cell": (3, 5)},
        ),
    }[asked]
    (expected,) = torch.autograd.grad(target, values)
    result = hookviz.layer_gradient(network, image, layer="first", **arguments)  # type: ignore[arg-type]
    torch.testing.assert_close(torch.from_numpy(result.gradient), expected[0])
    torch.testing.assert_close(torch.from_numpy(result.output), values.detach()[0])
    assert result.value == pytest.approx(float(target.detach()), abs=1e-6)
    assert result.norm == pytest.approx(float(expected.norm()), rel=1e-5)
    np.testing.assert_allclose(
        result.max_per_channel, expected[0].abs().amax((1, 2)).numpy(), rtol=1e-5
    )


def test_a_trace_has_every_call_with_its_sources_and_bytes() -> None:
    network = seeded(Branching)
    trace = hookviz.trace_execution(network, torch.rand(1, 3, 8, 8))
    assert trace.labels == ("first", "second", "head")
    assert trace.edges.tolist() == [[0, 1], [1, 2], [1, 3], [2, 3]]
    assert trace.nbytes.tolist() == [4 * 4 * 64, 4 * 4 * 64, 4 * 5]
    assert (trace.seconds > 0).all()


class Noisy(nn.Module):
    """Layer that puts out other numbers in each call."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + torch.rand_like(values)


def test_verification_names_the_layer_that_differs() -> None:
    image = torch.rand(1, 3, 8, 8)
    verification = hookviz.verify(seeded(Branching), image)
    assert verification.agrees
    assert list(verification.checks) == ["first", "second", "head"]
    assert (verification.relative < 1e-5).all()
    assert verification.is_record_checked
    noisy = hookviz.verify(nn.Sequential(nn.Conv2d(3, 2, 3), Noisy()).eval(), image)
    assert not noisy.agrees
    assert list(noisy.wrong) == ["1"]
    assert noisy.difference[1] > 0


def test_a_channels_maps_are_those_of_captures(shapes: hookviz.Model) -> None:
    paths = [str(each.path) for each in samples()][:3]
    missing = "no-such-image.jpg"
    maps = hookviz.channel_maps(shapes, STAR, images=[*paths, missing], layer=LAYER, channel=5)
    assert maps.names[0] == "star.jpg"
    assert (np.diff(maps.highest[1:]) <= 0).all()
    assert list(maps.left_out) == [missing]
    by_name = {path.rpartition("/")[2]: path for path in (*paths, str(STAR))}
    assert set(maps.names) == set(by_name)
    for name, values, cell, mean in zip(maps.names, maps.maps, maps.cells, maps.mean, strict=True):
        expected = hookviz.capture(shapes, by_name[name], LAYER)[LAYER].values[5].numpy()
        np.testing.assert_array_equal(values, expected)
        assert values[tuple(cell)] == values.max()
        assert mean == pytest.approx(expected.mean(), rel=1e-5)


def test_measurements_are_drawn_as_figures(shapes: hookviz.Model) -> None:
    results = (
        hookviz.conv_kernels(shapes, layer=LAYER),
        hookviz.region_selectivity(shapes, STAR, region="rect:0,0,0.5,1", layer=LAYER),
        hookviz.layer_gradient(shapes, STAR, layer=LAYER),
        hookviz.trace_execution(shapes, STAR),
        hookviz.verify(shapes, STAR),
        hookviz.channel_maps(shapes, STAR, images=[samples()[0].path], channel=3),
        hookviz.network_health(shapes, STAR),
        hookviz.gradient_flow(shapes, STAR),
        hookviz.ablate_channels(shapes, STAR, layer=LAYER),
    )
    for result in results:
        figure = result.figure()
        texts = [text.get_text() for text in figure.findobj(match=Text)]
        assert any(texts), type(result)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=50)
        assert len(np.unique(np.asarray(Image.open(file)))) > 10, type(result)


def test_figures_have_the_numbers_of_the_results(shapes: hookviz.Model) -> None:
    def lines(figure: Figure) -> list[list[float]]:
        return [line.get_ydata().tolist() for line in figure.axes[0].lines]  # type: ignore[union-attr]

    gradients, health = hookviz.gradient_flow(shapes, STAR), hookviz.network_health(shapes, STAR)
    assert lines(gradients.figure())[:2] == [gradients.norms.tolist(), gradients.strengths.tolist()]
    figure = health.figure()
    assert lines(figure)[0] == [output.largest for output in health.outputs]
    figure.canvas.draw()
    title = figure.texts[0].get_window_extent()
    assert not title.overlaps(figure.legends[0].get_window_extent())
    effects = hookviz.ablate_channels(shapes, STAR, layer=LAYER)
    axes = effects.figure(top=3).axes[0]
    falls = [bar.get_height() for bar in axes.patches]  # type: ignore[attr-defined]
    order = np.argsort(-np.abs(effects.score_changes))[:3]
    assert falls == pytest.approx((-effects.score_changes[order]).tolist())
    assert [text.get_text() for text in axes.get_xticklabels()] == list(map(str, order.tolist()))


def test_lenses_show_the_numbers_of_the_functions(shapes: hookviz.Model) -> None:
    other, region = str(samples()[0].path), "rect:0,0,0.5,1"
    kernels = hookviz.conv_kernels(shapes, STAR, layer=LAYER)
    selectivity = hookviz.region_selectivity(shapes, STAR, region=region, layer=LAYER)
    gradient = hookviz.layer_gradient(shapes, STAR, layer=LAYER, target="circle")
    trace, verification = hookviz.trace_execution(shapes, STAR), hookviz.verify(shapes, STAR)
    maps = hookviz.channel_maps(shapes, STAR, images=[other], layer=LAYER, channel=3)
    chosen: dict[str, dict[str, Any]] = {
        "kernels": {"layer": LAYER},
        "responds-here": {"layer": LAYER, "region": region},
        "gradients": {"layer": LAYER, "target": "circle"},
        "trace": {},
        "verify": {},
        "across-images": {"layer": LAYER, "channel": 3, "images": [other]},
    }
    expected = {
        "kernels": {name: getattr(kernels, name) for name in ("kernels", "norms", "pairs")},
        "responds-here": {"score": selectivity.score, "ranking": selectivity.ranking},
        "gradients": {"gradient": gradient.gradient, "max_per_channel": gradient.max_per_channel},
        "trace": {"edges": trace.edges, "bytes": trace.nbytes},
        "verify": {"difference": verification.difference, "relative": verification.relative},
        "across-images": {"maps": np.stack(maps.maps), "highest": maps.highest},
    }
    for slug, values in expected.items():
        lens = hookviz.run_lens(slug, shapes, STAR, **chosen[slug])
        for name, array in values.items():
            np.testing.assert_array_equal(lens.values[name], array, err_msg=f"{slug} {name}")
