"""What holds for every lens, through success and failure."""

import math
from collections.abc import Iterator
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
from tests.every_lens import OF_SEGMENTATION, OF_TRANSFORMERS
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


def test_an_unknown_parameter_is_refused(tiny: hookviz.Model) -> None:
    with pytest.raises(hookviz.SettingError, match="no parameter 'nonsense'"):
        running.run_lens("saliency", tiny, picture(), nonsense=1)


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
    subject = Subject(model, inputs.prepare(model, picture()), None)
    so_far: list[LensResult] = []
    result = running.look(lens, subject, {}, partial=so_far.append)
    assert [int(each.values["step"]) for each in (*so_far, result)] == [0, 1, 2, 3]
    assert [each.chosen for each in so_far] == 3 * [{"switch": True}]
    assert running.look(lens, subject, {}).values["step"] == 3  # nobody has to watch

    def stop(_result: LensResult) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        running.look(lens, subject, {}, partial=stop)
