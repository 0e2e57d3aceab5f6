"""What holds for every lens, through success and failure."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing import inputs
from hookviz.hooking.network_state import share
from hookviz.hooking.own_network import generators
from hookviz.lenses.contract import running, shared_choices
from hookviz.lenses.contract.lens import GROUPS, SEES, Lens, LensOutput, LensResult, Subject
from hookviz.lenses.contract.parameters import LayerChoice, Switch
from hookviz.types import Model
from tests.every_lens import OF_FEW, OF_SEGMENTATION, OF_TRANSFORMERS, SLUGS_OF_ANY
from tests.every_network import ALL_LENSES, IN_EVERY_NETWORK, ONE_OF_A_KIND
from tests.every_way import EVERY_WAY
from tests.networks import Tiny, all_hooks, as_model, hook_count, seeded
from tests.pictures import picture

EVERY = pytest.mark.parametrize("lens", running.list_lenses(), ids=lambda lens: lens.slug)


class Untouched:
    """A network's condition: versions and bytes of its tensors, hooks, gradients, modes.

    And where the random generators of torch, Python and NumPy are.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.before = self.condition()

    def condition(self) -> list[Any]:
        tensors = [*self.network.parameters(), *self.network.buffers()]
        return [
            [(tensor._version, tensor.requires_grad, tensor.grad) for tensor in tensors],
            [tensor.detach().numpy().tobytes() for tensor in tensors],
            [module.training for module in self.network.modules()],
            hook_count(self.network),
            generators(),
        ]

    def check(self) -> None:
        assert self.condition() == self.before


class TinyAttending(nn.Module):
    """A transformer of one layer, for lenses that ask for one."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.norm = nn.LayerNorm(8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.norm(self.patches(images).flatten(2).mT)
        mixed = tokens + self.attend(tokens, tokens, tokens)[0]
        scores: Tensor = self.head(mixed.mean(1))
        return scores


class TinySegmenting(nn.Sequential):
    """Scores of five classes for each pixel, for lenses that ask for them."""

    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 5, 3, padding=1))


def suited(lens: Lens) -> type[nn.Module]:
    """A tiny network that the lens can be asked about."""
    if lens.slug in OF_SEGMENTATION:
        return TinySegmenting
    return TinyAttending if lens.slug in OF_TRANSFORMERS else Tiny


class Trial(nn.Module):
    """A person's own: counts its passes in a buffer; its hook breaks one off where that is set."""

    passes: Tensor
    error: BaseException | None = None
    left = 0  # passes until then

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, images: Tensor) -> Tensor:
        self.passes += 1
        scores: Tensor = super().forward(images)
        return scores

    def hook(self, *_call: Any) -> None:
        self.left -= 1
        if self.error is not None and self.left < 0:
            raise self.error


def on_trial(lens: Lens) -> Any:
    """Such a network for the lens, in training mode."""
    network = seeded(type("Own", (Trial, suited(lens)), {}))
    next(network.children()).register_forward_pre_hook(network.hook)
    return network.train()


@pytest.fixture(params=["own", "catalog"])
def untouched(lens: Lens, request: pytest.FixtureRequest) -> Iterator[Untouched]:
    """A tiny network, checked to be untouched afterwards."""
    if request.param == "own":
        network = on_trial(lens)
    else:
        network = share(seeded(suited(lens)).eval().requires_grad_(requires_grad=False))
    found = Untouched(network)
    yield found
    found.check()
    assert not all_hooks(as_model(network)) - hook_count(network)


@EVERY
def test_success_leaves_nothing_behind(lens: Lens, untouched: Untouched) -> None:
    shares: list[float] = []
    model = as_model(untouched.network)
    result = running.run_lens(lens.slug, model, picture(), progress=shares.append)
    assert shares == sorted(shares) or lens.slug == "channels-that-matter"  # it begins twice
    assert all(0 <= share <= 1 for share in shares)
    assert result.panels
    assert result.lens == lens.slug
    assert set(result.chosen) == {parameter.name for parameter in lens.parameters}


@EVERY
@pytest.mark.parametrize("share_done", [0.0, 0.5])
def test_cancelling_leaves_nothing_behind(
    lens: Lens, untouched: Untouched, share_done: float
) -> None:
    class Cancelled(BaseException):
        pass

    shares: list[float] = []
    came_out = False

    def cancel(share: float) -> None:
        shares.append(share)
        if share >= share_done:
            raise Cancelled

    try:
        running.run_lens(lens.slug, as_model(untouched.network), picture(), progress=cancel)
    except Cancelled:
        came_out = True
    assert came_out == any(share >= share_done for share in shares)  # some are done before that


@EVERY
def test_a_pass_that_fails_or_is_interrupted_leaves_nothing_behind(
    lens: Lens, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What grows is shown now and then by the clock, with passes of its own.
    monkeypatch.setattr(shared_choices, "_EVERY", math.inf)
    network = on_trial(lens)
    running.run_lens(lens.slug, as_model(network), picture())
    passes = -network.left
    broken, interrupted = RuntimeError("this network is broken"), KeyboardInterrupt()
    stops = [(interrupted, at) for at in sorted({0, passes // 2, passes - 1})]
    for error, at in [(broken, 0), *stops]:
        network = on_trial(lens)
        network.error, network.left = error, at
        found = Untouched(network)
        with pytest.raises((KeyboardInterrupt, hookviz.HookVizError)) as caught:
            running.run_lens(lens.slug, as_model(network), picture())
        assert (error is interrupted) == isinstance(caught.value, KeyboardInterrupt)
        assert error is interrupted or "broken" in str(caught.value)
        found.check()


@EVERY
def test_two_runs_give_the_same_numbers(lens: Lens) -> None:
    model = as_model(seeded(suited(lens)))
    runs = [running.run_lens(lens.slug, model, picture()).values for _ in range(2)]
    assert runs[0].keys() == runs[1].keys()
    for name, values in runs[0].items():
        if values.dtype.kind == "U":  # names
            assert values.tolist() == runs[1][name].tolist()
        elif not name.startswith("seconds"):
            torch.testing.assert_close(
                torch.tensor(values), torch.tensor(runs[1][name]), rtol=0, atol=0, equal_nan=True
            )


@EVERY
def test_an_unknown_layer_is_refused_with_the_nearest(lens: Lens, tiny: hookviz.Model) -> None:
    names = [each.name for each in lens.parameters if isinstance(each, LayerChoice)]
    if not names:
        pytest.skip("it takes no layer")
    for name in names:
        with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
            running.run_lens(lens.slug, tiny, picture(), **{name: "conv22"})  # type: ignore[arg-type]


@EVERY
def test_it_says_what_it_is(lens: Lens) -> None:
    assert lens.sentence.endswith(".")
    assert lens.title
    assert lens.question.endswith("?")
    assert lens.question.split()[0] in running.QUESTION_WORDS
    assert lens.group in GROUPS
    assert all(parameter.label for parameter in lens.parameters)


def _growing(subject: Subject, *, switch: bool) -> LensOutput:
    for step in range(3):
        subject.partial(((), {"step": np.array(step)}))
    return (), {"step": np.array(3), "switch": np.array(switch)}


def test_a_lens_may_hand_over_what_it_has_so_far() -> None:
    switch = Switch(name="switch", label="Switch", default=True)
    about = ("growing", "Growing", "What grows?", "It grows.")
    lens = Lens(*about, _growing, (switch,), group=SEES, script=lambda _facts: ("", {}))
    model = as_model(seeded(Tiny))
    subject = Subject(model, inputs.prepare_input(model, picture()), None)
    so_far: list[LensResult] = []
    result = running.look(lens, subject, {}, partial=so_far.append)
    assert [int(each.values["step"]) for each in (*so_far, result)] == [0, 1, 2, 3]
    assert [each.chosen for each in so_far] == 3 * [{"switch": True}]
    assert running.look(lens, subject, {}).values["step"] == 3  # nobody has to watch

    def stop(_result: LensResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        running.look(lens, subject, {}, partial=stop)


EIGHT = (
    *("ablate", "channels-that-matter", "grad-cam", "gradient-flow"),
    *("health", "prune-weights", "saliency", "verify"),
)


def same(some: LensResult, others: LensResult) -> None:
    assert some.values.keys() == others.values.keys()
    for name, values in some.values.items():
        if not name.startswith("seconds"):
            np.testing.assert_array_equal(values, others.values[name], err_msg=name)


def test_eight_sessions_with_eight_lenses_get_what_they_would_get_alone() -> None:
    model = hookviz.load_model("shapesnet")
    untouched = Untouched(model.network)
    images = [picture(seed, 90, 70) for seed in range(len(EIGHT))]

    def session(place: int, turns: int) -> list[LensResult]:
        return [
            hookviz.run_lens(EIGHT[(place + turn) % len(EIGHT)], model, images[place], size=64)
            for turn in range(turns)
        ]

    alone = [session(place, 2) for place in range(len(EIGHT))]
    with ThreadPoolExecutor(len(EIGHT)) as pool:
        together = list(pool.map(lambda place: session(place, 2), range(len(EIGHT))))
    for mine, theirs in zip(alone, together, strict=True):
        for some, others in zip(mine, theirs, strict=True):
            same(some, others)
    untouched.check()


@pytest.mark.parametrize("slug", SLUGS_OF_ANY)
def test_a_network_without_scores_works_or_is_told_why(slug: str) -> None:
    network = seeded(lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()))
    try:
        assert hookviz.run_lens(slug, as_model(network), picture()).panels
    except hookviz.HookVizError as error:
        assert "class scores" in str(error)  # noqa: PT017 - either is right


def test_lenses_begin_at_a_layer_that_is_not_the_classes_themselves() -> None:
    model = hookviz.load_model("squeezenet")
    image = Path(__file__).parents[2] / "assets" / "samples" / "cat.jpg"
    begins = {
        slug: running.run_lens(slug, model, image).chosen["layer"]
        for slug in ("grad-cam", "gradients", "embedding")
    }
    assert begins == {
        "grad-cam": "features.12",  # all of the last maps, of both convs
        "gradients": "features.12.expand3x3",
        "embedding": "features.12",
    }


_FORWARD, _BACKWARD = ("embedding", "inputs", "kernels", "summary"), ("grad-cam", "saliency")
"""Quick lenses that ask for a pass, and for gradients; each network meets one of both, by turns."""


def lenses_of(name: str) -> list[Lens]:
    """The lenses that go through a network: all of them, or one of each way of working."""
    every = running.list_lenses()
    if EVERY_WAY or name in ALL_LENSES:
        return list(every)
    turn = sorted(ONE_OF_A_KIND).index(name)
    met = _FORWARD[turn % len(_FORWARD)], _BACKWARD[turn % len(_BACKWARD)], "verify"
    return [lens for lens in every if lens.slug in met]


@pytest.mark.sweep("by day on ShapesNet: test_every_lens.py")
@IN_EVERY_NETWORK
def test_every_lens_works_on(of_catalog: Model) -> None:
    model, side = of_catalog, max(64, of_catalog.min_size)
    versions = [parameter._version for parameter in model.network.parameters()]
    convs = hookviz.list_layers(model)
    for lens in lenses_of(model.name):
        if lens.slug in OF_FEW:
            continue
        chosen = _short(lens.slug)
        if lens.slug == "maximize":  # 32 steps, to a layer in the middle
            chosen["layer"] = convs[len(convs) // 2].name
        result = running.run_lens(lens.slug, model, picture(), size=side, **chosen)
        assert result.panels, lens.slug
        if lens.slug == "verify":
            assert "agree exactly" in str(result.panels[0]), result.panels[0]
    assert hook_count(model.network) == 0
    assert [parameter._version for parameter in model.network.parameters()] == versions


def _short(slug: str) -> dict[str, Any]:
    """Choices that keep a sweep over 69 networks within minutes."""
    short: dict[str, dict[str, Any]] = {
        "prune-weights": {"most": 45, "step": 45},
        "maximize": {"of": "channels side by side", "channels": "0", "steps": 32, "side": 32},
        "dream": {"steps": 2},
        "inversion": {"steps": 2, "layers": 2},
        "occlusion": {"window": 32, "stride": 32},
        "integrated-gradients": {"steps": 2},
        "effective-receptive-field": {"count": 1},
    }
    return short.get(slug, {})
