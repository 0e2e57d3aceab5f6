"""Recorded calls of conv layers and layer norms, against captures and formulas by hand."""

import copy
import random
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

import hookviz
from hookviz.explaining.layers.layer_call import explain_cell
from hookviz.explaining.layers.layer_recorder import (
    explain_norm,
    record_layer_call,
    record_norm_call,
)
from hookviz.types import Model
from tests.attending import plain_pass
from tests.explaining.layers.test_layer_call import (
    assert_as_recorded,
    every_place,
    net_with,
    recorded_cell,
    some_places,
)
from tests.networks import Tiny, all_hooks, as_model, random_input, seeded
from tests.token_networks import TOKEN_NETWORKS


@pytest.mark.parametrize("name", ["mobilenet_v2", "squeezenet1_1", "convnext_tiny", "shapesnet"])
def test_cells_of_catalog_models_are_the_captured_values(name: str) -> None:
    model = hookviz.load_model(name, "random")
    image = random_input(3, 64)
    cap = hookviz.capture(model, image)
    chosen = random.Random(0).sample(list(cap), 7)
    for seed, layer in enumerate([next(iter(cap)), *chosen]):
        call = record_layer_call(model, image, layer)
        values = cap[layer].values
        assert torch.equal(call.output, values)
        for place in some_places(values, seed):
            cell = explain_cell(call, *place)
            assert cell.value == values[place].item()
            assert cell.agrees, (layer, place, cell.total, cell.value, cell.tolerance)


def steps_of(model: Model, layer: str, image: Tensor | None = None) -> list[tuple[str, str]]:
    """Layer and kind of every step behind `layer`, each checked against a capture."""
    image = random_input(3, 64) if image is None else image
    call = record_layer_call(model, image, layer)
    for step in call.steps:
        if step.layer:
            parts = hookviz.capture(model, image, step.layer, logits=False).calls(step.layer)
            assert any(torch.equal(part.values, step.values) for part in parts)
    return [(step.layer, step.kind) for step in call.steps]


def behind_conv(*modules: nn.Module) -> Model:
    """A conv with these behind it, with statistics and weights that do something."""
    network = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), *modules))
    generator = torch.Generator().manual_seed(5)
    for module in modules:
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.data.uniform_(0.5, 2, generator=generator)
    return as_model(network)


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        (nn.BatchNorm2d(4), "BatchNorm2d"),
        (nn.BatchNorm2d(4, affine=False), "BatchNorm2d"),
        (nn.BatchNorm2d(4, eps=0.5, track_running_stats=False), "BatchNorm2d"),
        (nn.InstanceNorm2d(4), "InstanceNorm2d"),
        (nn.InstanceNorm2d(4, affine=True, track_running_stats=True), "InstanceNorm2d"),
    ],
)
def test_a_norm_brings_the_numbers_it_worked_with(norm: nn.Module, kind: str) -> None:
    model, image = behind_conv(norm, nn.ReLU(inplace=True)), random_input(1)
    call = record_layer_call(model, image, "0")
    assert [step.kind for step in call.steps] == [kind, "ReLU"]
    values = hookviz.capture(model, image, ["0", "1", "2"])
    for place in some_places(call.output):
        cell = explain_cell(call, *place)
        normed, rectified = cell.steps
        assert cell.value == values["0"].values[place].item()
        assert normed.value == values["1"].values[place].item()
        assert rectified.value == values["2"].values[place].item()
        assert normed.norm is not None
        assert normed.norm.apply(cell.value) == pytest.approx(normed.value, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    "activation",
    [
        *(nn.ReLU(), nn.ReLU6(inplace=True), nn.ELU(inplace=True), nn.GELU(), nn.SiLU()),
        *(nn.Hardswish(inplace=True), nn.PReLU(4), nn.Threshold(0.1, 2), nn.Softshrink()),
    ],
    ids=lambda module: type(module).__name__,
)
def test_every_usual_activation_is_a_step(activation: nn.Module) -> None:
    model, image = behind_conv(activation, nn.AdaptiveAvgPool2d(1)), random_input(1)
    (step,) = record_layer_call(model, image, "0").steps
    assert (step.layer, step.kind) == ("1", type(activation).__name__)
    conv = model.network.get_submodule("0")
    with torch.no_grad():
        assert torch.equal(step.values, copy.deepcopy(activation)(conv(image))[0])


def test_what_does_nothing_in_between_is_passed_by() -> None:
    model = behind_conv(
        nn.Identity(), nn.Dropout(), nn.GroupNorm(2, 4), nn.Identity(), nn.Tanh(), nn.Identity()
    )
    assert steps_of(model, "0", random_input(1)) == [("3", "GroupNorm"), ("5", "Tanh")]


def test_a_norm_with_an_activation_inside_is_named_by_its_own_numbers() -> None:
    class BatchNormAct(nn.BatchNorm2d):  # as in timm
        def __init__(self) -> None:
            super().__init__(4)
            self.act = nn.ReLU(inplace=True)

        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            normed = F.batch_norm(input, self.running_mean, self.running_var, self.weight)
            values: Tensor = self.act(normed)
            return values

    model = behind_conv(BatchNormAct(), nn.Identity())
    call = record_layer_call(model, random_input(1), "0")
    assert [(step.layer, step.kind) for step in call.steps] == [
        ("1", "BatchNormAct"),
        ("1.act", "ReLU"),
    ]
    assert torch.equal(call.steps[1].values, call.steps[0].values.relu())


class Forked(nn.Module):
    """Something that is done with a convolution's output, named `way`."""

    def __init__(self, way: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.way = way

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.conv(images)
        return self.way(values)


def tanh_and_more(found: Tensor) -> Tensor:
    return found.tanh() + found


@pytest.mark.parametrize(
    ("way", "kinds"),
    [
        (lambda x: x * torch.sigmoid(x), []),
        (lambda x: torch.sigmoid(x) + x.mean(), []),
        (lambda x: torch.cat([x, x + 1]).relu(), []),
        (lambda x: F.relu(x + 1), []),
        (lambda x: F.relu_(x.add_(1)), []),
        (lambda x: x.relu().sum() + x.sum(), []),
        (lambda x: tanh_and_more(x.relu()), ["relu"]),
        (lambda x: F.relu_(x).mul_(2).tanh(), ["relu"]),
        (lambda x: x.clamp(min=0)[:, :, : x.shape[2] // 2], ["clamp"]),
        (lambda x: x.contiguous().tanh().sigmoid(), ["tanh", "sigmoid"]),
        (lambda x: F.relu(x.view(1, -1), inplace=True), []),
    ],
)
def test_only_what_comes_next_for_certain_is_a_step(
    way: Callable[[Tensor], Tensor], kinds: list[str]
) -> None:
    model = as_model(seeded(lambda: Forked(way)))
    image = random_input(1)
    call = record_layer_call(model, image, "conv")
    assert [step.kind for step in call.steps] == kinds
    with torch.no_grad():
        result = model.network.get_submodule("conv")(image)
    assert torch.equal(call.output, result[0])


def test_the_kernel_is_the_one_that_was_used() -> None:
    class Standardised(nn.Conv2d):  # as in timm's StdConv2d
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            weight = self.weight / self.weight.std((1, 2, 3), keepdim=True)
            return F.conv2d(input, weight, self.bias, self.stride, self.padding)

    class Same(nn.Conv2d):  # as in timm's Conv2dSame: more padding below and to the right
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            return F.conv2d(F.pad(input, (0, 1, 1, 2), value=2.0), self.weight, padding=1)

    image = random_input(2)
    for build in (
        lambda: Standardised(4, 6, 3, padding=1),
        lambda: Same(4, 6, 3),
        lambda: weight_norm(nn.Conv2d(4, 6, 3)),
    ):
        model = net_with(build)
        call = record_layer_call(model, image, "conv")
        assert all(explain_cell(call, *cell).agrees for cell in every_place(call.output))
        assert torch.equal(call.input, model.network.get_submodule("before")(image)[0].detach())
    call = record_layer_call(net_with(lambda: Same(4, 6, 3)), image, "conv")
    corner = explain_cell(call, 0, 0, 0)
    assert corner.origin == (-2, -1)
    assert corner.patch[0, :, 0].tolist() == [0, 0, 0]
    assert corner.patch[0, 1, 1:].tolist() == [2, 2]  # its own padding has a value of its own
    assert corner.inside.tolist() == [[False] * 3, [False] * 3, [False, True, True]]


def test_each_call_of_a_shared_layer_is_its_own() -> None:
    def twice() -> nn.Module:
        conv = nn.Conv2d(3, 3, 3, padding=1)
        return nn.Sequential(conv, nn.Tanh(), conv)

    model, image = as_model(seeded(twice)), random_input(2)
    cap = hookviz.capture(model, image)
    first = recorded_cell(model, image, "0", 1, 2, 3)
    second = recorded_cell(model, image, "0", 1, 2, 3, call=1)
    assert (first.layer, second.layer) == ("0", "0#1")
    assert first.value == cap["0"].values[1, 2, 3].item()
    assert second.value == cap["0#1"].values[1, 2, 3].item()
    assert [step.kind for step in first.steps] == ["Tanh"]
    assert second.steps == ()
    assert first.agrees
    assert second.agrees
    with pytest.raises(hookviz.SettingError, match="no call 3: its calls are 1 to 2"):
        recorded_cell(model, image, "0", 0, 0, 0, call=2)


def test_what_is_written_over_later_is_kept_as_it_was() -> None:
    class Overwriting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            values: Tensor = self.conv(images)
            positive = F.relu(values)
            images.zero_()
            values.zero_()
            return positive.mul_(0)

    image = random_input(1)
    before = image.clone()
    model = as_model(seeded(Overwriting))
    call = record_layer_call(model, image, "conv")
    assert torch.equal(image, before)
    assert torch.equal(call.input, image[0])
    with torch.no_grad():
        output = model.network.get_submodule("conv")(image)[0]
    assert torch.equal(call.output, output)
    assert explain_cell(call, 1, 2, 3).agrees
    call.kernel.zero_()  # it is the record's own
    assert model.network.get_submodule("conv").weight.abs().sum() > 0  # type: ignore[operator]


@pytest.mark.parametrize(
    "layer",
    [nn.ConvTranspose2d(4, 2, 3), nn.BatchNorm2d(4), nn.Sequential(nn.Conv2d(4, 2, 3))],
    ids=lambda module: type(module).__name__,
)
def test_other_layers_are_refused_with_one_that_works(layer: nn.Module) -> None:
    model = net_with(lambda: layer)
    with pytest.raises(hookviz.SettingError, match=r"Only ordinary two-dim.*'before'") as caught:
        recorded_cell(model, random_input(0), "conv", 0, 0, 0)
    assert type(layer).__name__ in str(caught.value)


def test_a_layer_that_is_more_than_a_convolution_is_refused() -> None:
    class Gained(nn.Conv2d):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            return super().forward(input) * 2

    class Shifted(nn.Conv2d):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            return super().forward(input - 1)

    class Cropped(nn.Conv2d):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            return super().forward(F.pad(input, (-1, 0)))

    for kind in (Gained, Shifted, Cropped):
        model = net_with(lambda kind=kind: kind(4, 2, 3))  # type: ignore[misc]
        with pytest.raises(hookviz.ModelError, match=r"'conv' .* more than one call of torch's"):
            record_layer_call(model, random_input(0), "conv")
        assert all_hooks(model) == 0


def test_a_linear_layer_that_is_more_or_has_no_places_is_refused() -> None:
    class Doubled(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:  # noqa: A002
            return super().forward(input) * 2

    class Mixing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 4, stride=4)
            self.doubled = Doubled(4, 4)
            self.head = nn.Linear(4, 2)

        def forward(self, images: Tensor) -> Tensor:
            places = self.doubled(self.conv(images).permute(0, 2, 3, 1))
            scores: Tensor = self.head(places.mean((1, 2)))
            return scores

    model = as_model(seeded(Mixing))
    with pytest.raises(hookviz.ModelError, match=r"'doubled' .* more than one call of torch's l"):
        record_layer_call(model, random_input(0), "doubled")
    with pytest.raises(hookviz.ModelError, match=r"'head' .* no maps, or nobody knows"):
        record_layer_call(model, random_input(0), "head")
    assert all_hooks(model) == 0


def test_several_images_at_once_are_refused() -> None:
    class Tiles(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            values: Tensor = self.conv(torch.cat(images.chunk(2, 2)))
            return values

    with pytest.raises(hookviz.ModelError, match="run on 2 images at once"):
        record_layer_call(as_model(Tiles()), random_input(0), "conv")


def test_unknown_unused_and_misfitting(tiny: Model, noise: Tensor) -> None:
    with pytest.raises(hookviz.UnknownLayerError, match="'conv1'"):
        record_layer_call(tiny, noise, "cnov1")
    with pytest.raises(hookviz.UnknownLayerError):
        record_layer_call(tiny, noise, "")
    with pytest.raises(hookviz.ModelError, match="can't take an input of 1×16×16"):
        record_layer_call(tiny, noise[:, :1], "conv1")

    class Unused(Tiny):
        def __init__(self) -> None:
            super().__init__()
            self.spare = nn.Conv2d(3, 4, 3)

    with pytest.raises(hookviz.ModelError, match=r"'spare' of .* is not run"):
        record_layer_call(as_model(Unused()), noise, "spare")


BROKEN: list[bool] = []


class Failing(nn.Module):
    """A convolution, its ReLU, a pool, and then an error."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Conv2d(4, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.pool(self.relu(self.conv(images)))
        if BROKEN:
            raise RuntimeError("broken behind the pool")
        last: Tensor = self.last(values)
        return last


def test_the_pass_ends_when_nothing_more_can_follow() -> None:
    model = as_model(Failing())
    image = random_input(0)[:, :, :8]
    for shown in (image, random_input(0)):
        hookviz.list_layers(model, input_shape=tuple(shown.shape[1:]))
    BROKEN.append(True)
    try:
        assert steps_of(model, "conv", image) == [("relu", "ReLU")]
        with pytest.raises(hookviz.ModelError, match="broken behind the pool"):
            record_layer_call(model, random_input(0), "last")
    finally:
        BROKEN.clear()
    assert all_hooks(model) == 0


def test_nothing_is_left_on_the_model(tiny: Model, noise: Tensor) -> None:
    tensors = [*tiny.network.parameters(), *tiny.network.buffers()]
    before = [(tensor._version, tensor.clone()) for tensor in tensors]
    for layer in ("conv1", "conv2"):
        recorded_cell(tiny, noise, layer, 0, 0, 0)
    with pytest.raises(hookviz.SettingError):
        recorded_cell(tiny, noise, "relu", 0, 0, 0)
    assert all_hooks(tiny) == 0
    assert all(module.training for module in tiny.network.modules())
    for tensor, (version, values) in zip(tensors, before, strict=True):
        assert tensor._version == version
        assert torch.equal(tensor, values)
        assert tensor.grad is None
    assert not torch.overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]


def test_records_made_at_once_do_not_mix(tiny: Model) -> None:
    images = [random_input(seed) for seed in range(4)]
    expected = [hookviz.capture(tiny, image, "conv2")["conv2"].values for image in images]
    wrong: list[int] = []

    def work(cell: int) -> None:
        for _ in range(15):
            call = record_layer_call(tiny, images[cell], "conv2")
            if (
                not torch.equal(call.output, expected[cell])
                or not explain_cell(call, 1, 2, 3).agrees
            ):
                wrong.append(cell)

    threads = [threading.Thread(target=work, args=(cell,)) for cell in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert wrong == []


@pytest.mark.parametrize("name", TOKEN_NETWORKS)
def test_a_token_s_value_is_the_formula_of_the_numbers_beside_it(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    model = case.model()
    _, seen = plain_pass(model.network, case.image())
    norms = [
        layer
        for layer in case.layers
        if isinstance(model.network.get_submodule(layer), nn.LayerNorm)
    ]
    assert norms
    for layer in norms:
        module: Any = model.network.get_submodule(layer)
        given, output = (case.maps(each)[0] for each in seen[layer])
        call = record_norm_call(model, case.image(), layer)
        captured = hookviz.capture(model, case.image(), layer)[layer].values
        assert_as_recorded(name, (call.given, call.output, call.output), (given, output, captured))
        given, output = call.given, call.output
        for channel, row, column in every_place(output):
            beside = given[:, row, column].double()
            deviation = (beside.square().mean() - beside.mean() ** 2 + module.eps).sqrt()
            scaled = (beside[channel] - beside.mean()) / deviation * module.weight[channel].double()
            expected = float((scaled + module.bias[channel].double()).detach())
            cell = explain_norm(call, channel, row, column)
            assert cell.total == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert cell.value == float(output[channel, row, column])
            assert cell.given == float(given[channel, row, column])
            assert cell.norm.mean == pytest.approx(float(beside.mean()), abs=1e-9)
            assert cell.norm.variance == pytest.approx(float(beside.var(correction=0)), rel=1e-6)
            assert cell.together == len(given)
            assert cell.agrees


def norm_behind_conv(build: Callable[[], nn.Module]) -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), build()))


def test_maps_that_are_turned_for_it_and_back_are_its_maps() -> None:
    model = TOKEN_NETWORKS["ConvNeXt"].model()
    image = TOKEN_NETWORKS["ConvNeXt"].image()
    _, seen = plain_pass(model.network, image)
    given, output = (each[0] for each in seen["features.0.1"])  # (C, H, W) both
    call = record_norm_call(model, image, "features.0.1")
    assert torch.equal(call.given, given)
    assert torch.equal(call.output, output)
    torch.testing.assert_close(call.mean[3], given.double().mean(0))
    assert all(explain_norm(call, *place).agrees for place in every_place(output))


@pytest.mark.parametrize("affine", [True, False])
def test_maps_can_be_normalised_as_a_whole(affine: bool) -> None:
    network = norm_behind_conv(lambda: nn.LayerNorm((4, 14, 14), 0.1, elementwise_affine=affine))
    if affine:
        torch.nn.init.normal_(network.get_parameter("1.weight"))
        torch.nn.init.normal_(network.get_parameter("1.bias"))
    call = record_norm_call(as_model(network), random_input(1), "1")
    with torch.no_grad():
        given = network.get_submodule("0")(random_input(1))[0].double()
        plain = (given - given.mean()) / (given.var(correction=0) + 0.1).sqrt()
        if affine:
            plain = plain * network.get_parameter("1.weight") + network.get_parameter("1.bias")
    cells = [explain_norm(call, *place) for place in [(0, 0, 0), (3, 13, 2), (1, 5, 11)]]
    for cell in cells:
        assert cell.total == pytest.approx(float(plain[cell.channel, cell.row, cell.column]))
        assert cell.together == 4 * 14 * 14
        assert cell.agrees


def test_a_wrong_value_does_not_agree() -> None:
    case = TOKEN_NETWORKS["timm's Swin"]
    call = record_norm_call(case.model(), case.image(), case.layers[0])
    assert not explain_norm(replace(call, output=call.output + 1e-3), 1, 2, 3).agrees
    with pytest.raises(hookviz.SettingError, match="no column 6: its columns are 0 to 5"):
        explain_norm(call, 0, 0, 6)


class Twice(nn.LayerNorm):
    """More than a layer norm."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return 2 * super().forward(input)


class Shifted(nn.LayerNorm):
    """Not of what it is given."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return F.layer_norm(input + 1, self.normalized_shape, self.weight, self.bias, self.eps)


@pytest.mark.parametrize("kind", [Twice, Shifted])
def test_a_layer_that_is_more_than_a_norm_is_refused(kind: type[nn.LayerNorm]) -> None:
    model = as_model(norm_behind_conv(lambda: kind((4, 14, 14))))
    with pytest.raises(
        hookviz.ModelError, match=r"'1' .* more than one call of torch's layer_norm"
    ):
        record_norm_call(model, random_input(0), "1")
    assert all_hooks(model) == 0


def test_what_is_no_norm_or_has_no_maps_is_refused() -> None:
    model = as_model(norm_behind_conv(lambda: nn.Sequential(nn.Flatten(), nn.LayerNorm(4 * 14**2))))
    with pytest.raises(hookviz.SettingError, match="'0' is a Conv2d, and no LayerNorm"):
        record_norm_call(model, random_input(0), "0")
    with pytest.raises(hookviz.ModelError, match=r"'1.1' .* no maps, or its rows and columns"):
        record_norm_call(model, random_input(0), "1.1")
    with pytest.raises(hookviz.UnknownLayerError, match="'2'"):
        record_norm_call(model, random_input(0), "2")
    case = TOKEN_NETWORKS["timm's Swin"]
    with pytest.raises(hookviz.SettingError, match="no call 2: its calls are 1 to 1"):
        record_norm_call(case.model(), case.image(), case.layers[0], 1)
