import copy
import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.hooks import RemovableHandle

import hookviz
from hookviz.training import watching
from hookviz.training.watching import NonFiniteTensor, NonFiniteTensorError, watch
from tests.networks import Tiny, hook_count, random_input, seeded

TARGET = torch.tensor([2])


@pytest.fixture
def network() -> Tiny:
    return seeded(Tiny).train()


def loss_of(network: nn.Module, seed: int = 0) -> Tensor:
    return nn.functional.cross_entropy(network(random_input(seed)), TARGET)


def back(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


class BadBackward(torch.autograd.Function):
    """The identity, whose gradient is NaN or infinite in one place."""

    @staticmethod
    def forward(ctx: Any, batch: Tensor, bad: float) -> Tensor:
        ctx.bad = bad
        return batch.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        gradient = gradients[0].clone()
        gradient.view(-1)[0] = ctx.bad
        return gradient, None


class Between(nn.Module):
    def __init__(self, bad: float) -> None:
        super().__init__()
        self.bad = bad

    def forward(self, batch: Tensor) -> Tensor:
        output: Tensor = BadBackward.apply(batch, self.bad)
        return output


def test_training_is_the_same_as_without(network: Tiny) -> None:
    other = copy.deepcopy(network)
    with watch(network) as bad_tensors:
        for seed in range(2):
            back(loss_of(network, seed))
    assert bad_tensors == []
    for seed in range(2):
        back(loss_of(other, seed))
    for ours, theirs in zip(network.parameters(), other.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([torch.nan], "nan"), ([torch.inf], "inf"), ([torch.nan, -torch.inf], "nan and inf")],
)
def test_a_bad_bias_is_found_where_it_is(network: Tiny, values: list[float], kind: str) -> None:
    with watch(network):
        loss_of(network)
        with torch.no_grad():
            for channel, value in enumerate(values):
                network.conv2.bias[channel] = value  # type: ignore[index]
        with pytest.raises(NonFiniteTensorError) as caught:
            loss_of(network)
    bad = NonFiniteTensor("conv2", 1, "forward", kind, "output", (1, 6, 7, 7))
    assert caught.value.found == bad
    assert isinstance(caught.value, hookviz.HookVizError)
    for part in (
        "output of conv2",
        "forward",
        "call 1",
        "1×6×7×7",
        "NaN" if "nan" in kind else "Inf",
    ):
        assert part in str(caught.value)


def test_a_module_that_runs_twice_is_found_by_its_call() -> None:
    class Grows(nn.Module):
        def forward(self, batch: Tensor) -> Tensor:
            return batch * 1e30

    grows = Grows()
    with watch(nn.Sequential(grows, nn.Tanh(), grows, grows), record=True) as bad_tensors:
        nn.Sequential(grows, nn.Tanh(), grows, grows)(torch.ones(1, 3))
    assert bad_tensors == [NonFiniteTensor("0", 2, "forward", "inf", "output", (1, 3))]


@pytest.mark.parametrize(("bad", "kind"), [(torch.nan, "nan"), (-torch.inf, "inf")])
def test_a_bad_gradient_is_found_at_the_output_it_belongs_to(
    network: Tiny, bad: float, kind: str
) -> None:
    chain = nn.Sequential(network.conv1, nn.ReLU(inplace=True), Between(bad), network.conv2)
    with watch(chain):
        for _ in range(2):
            chain(random_input(0))
        with pytest.raises(NonFiniteTensorError) as caught:
            back(chain(random_input(0)).sum())
    # The ReLU's output is where the bad gradient arrives, although nothing but Between made it.
    assert caught.value.found == NonFiniteTensor("1", 2, "backward", kind, "output", (1, 4, 16, 16))
    assert "gradient of the output of 1, backward pass, call 2" in str(caught.value)


def test_in_place_layers_have_the_gradient_of_what_they_overwrite(network: Tiny) -> None:
    chain = nn.Sequential(network.conv1, Between(torch.nan), nn.ReLU(inplace=True))
    with watch(chain, record=True) as bad_tensors:
        back(chain(random_input(0)).sum())
    assert [(each.layer, each.phase, each.tensor) for each in bad_tensors] == [
        ("0", "backward", "output"),
        ("0", "backward", "weight"),
        ("0", "backward", "bias"),
    ]


def test_a_bad_gradient_of_a_parameter_is_found() -> None:
    linear = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        linear.weight.fill_(1e-10)  # so that what is put out, and the loss of it, are finite
    with watch(linear):
        back(linear(torch.full((1, 1), 1e20)).sum())
        with pytest.raises(NonFiniteTensorError) as caught:
            back((linear(torch.full((1, 1), 1e20)) * 1e20).sum())
    assert caught.value.found == NonFiniteTensor("", 1, "backward", "inf", "weight", (1, 1))
    assert "gradient of the weight of the model itself" in str(caught.value)


def test_what_a_container_computes_by_itself_is_seen() -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, batch: Tensor) -> dict[str, Any]:
            return {"fine": self.inner(batch), "bad": [batch.clone(), batch.log()], "count": 3}

    model = Root()
    with pytest.raises(NonFiniteTensorError) as caught, watch(model):
        model(random_input(0))
    assert caught.value.found.layer == ""
    assert caught.value.found.tensor == "output[bad][1]"


def test_recording_goes_on_and_says_each_thing_once(network: Tiny) -> None:
    with torch.no_grad():
        network.conv1.weight[0] = torch.nan
    with watch(network, record=True) as bad_tensors:
        for seed in range(3):
            back(loss_of(network, seed))
    forward = [each.layer for each in bad_tensors if each.phase == "forward"]
    assert forward == ["conv1", "relu", "conv2", "head"]  # the model itself gives what head gave
    assert bad_tensors[0] == NonFiniteTensor("conv1", 0, "forward", "nan", "output", (1, 4, 16, 16))
    assert len(bad_tensors) == len({(each.layer, each.phase, each.tensor) for each in bad_tensors})
    assert {each.tensor for each in bad_tensors if each.phase == "backward"} == {
        *("output", "weight", "bias")
    }


def test_hooks_are_gone_afterwards_and_after_a_bad_tensor(network: Tiny) -> None:
    """Wherever a pass breaks off: tests/test_hook_contract.py."""
    with watch(network):
        loss = loss_of(network)
    assert hook_count(network) == 0
    assert not any(parameter._backward_hooks for parameter in network.parameters())
    back(loss * torch.nan)  # nothing looks any more
    chain = nn.Sequential(network, Between(torch.nan))
    with pytest.raises(NonFiniteTensorError), watch(chain):
        back(chain(random_input(0)).sum())
    assert hook_count(chain) == 0


def test_no_tensor_and_no_handle_is_kept_alive(network: Tiny) -> None:
    outputs: list[Any] = []
    handles = []
    network.conv2.register_forward_hook(lambda *call: outputs.append(ref(call[2])))
    with watch(network):
        for step in range(300):
            loss = loss_of(network)
            if step % 2:
                back(loss)
            del loss
            if step in (149, 299):
                gc.collect()
                handles.append(sum(type(each) is RemovableHandle for each in gc.get_objects()))
        assert [output() for output in outputs] == [None] * 300
    assert handles[1] <= handles[0] + 300  # of about 5 × 300 that were made


def test_several_graphs_wait_for_their_backward_pass(network: Tiny) -> None:
    chain = nn.Sequential(network, Between(torch.nan))
    with watch(chain, record=True) as bad_tensors:
        losses = [chain(random_input(seed)).sum() for seed in range(120)]
        back(losses[3])
    assert [each.call for each in bad_tensors if each.layer.startswith("0")][:1] == [3]
    assert bad_tensors[0].layer == "0.head"


def test_whole_numbers_and_empty_tensors_are_fine() -> None:
    class Counts(nn.Module):
        def forward(self, batch: Tensor) -> tuple[Tensor, Tensor]:
            return batch.argmax(1), batch[:0]

    model = Counts()
    with watch(model) as bad_tensors, torch.no_grad():
        model(random_input(0))
    assert bad_tensors == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_large_numbers_are_not_bad_and_a_hidden_infinity_is(dtype: torch.dtype) -> None:
    large = torch.finfo(dtype).max
    batch = torch.full((5, 7), large).to(dtype)
    model = nn.Identity()
    with watch(model, record=True) as bad_tensors:
        model(batch)  # whose sum overflows
        assert bad_tensors == []
        batch[1, 1], batch[2, 2] = torch.inf, -torch.inf
        model(batch)
    assert [each.kind for each in bad_tensors] == ["inf"]


def traced(layers: nn.Module) -> nn.Module:
    program: nn.Module = torch.jit.trace(layers, torch.ones(1, 3))  # type: ignore[no-untyped-call]
    return program


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.parametrize("program", [torch.jit.script, traced])
def test_a_program_inside_is_watched_as_a_whole(program: Callable[[nn.Module], nn.Module]) -> None:
    inner = seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)))
    network = nn.Sequential(nn.Linear(3, 3), program(inner), nn.Linear(3, 2))
    batch = torch.ones(2, 3)
    expected = network(batch)
    with watch(network):
        assert torch.equal(network(batch), expected)
        back(network(batch).sum())
    with torch.no_grad():
        network.get_parameter("1.0.bias")[0] = torch.inf
    with watch(network, record=True) as bad_tensors:
        network(batch)
    # Not of 1.0, whose calls torch makes by itself: the first layer that it returns to.
    assert bad_tensors[0] == NonFiniteTensor("1", 0, "forward", "inf", "output", (2, 3))
    assert hook_count(network) == 0


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
def test_a_program_is_watched_by_its_output_and_its_gradients() -> None:
    program = torch.jit.script(seeded(lambda: nn.Sequential(nn.Linear(3, 3), nn.ReLU())))
    with watch(program, record=True) as bad_tensors:
        back((program(torch.ones(2, 3)) * torch.nan).sum())
    assert {(each.layer, each.phase, each.tensor) for each in bad_tensors} == {
        ("", "loss", "loss"),
        ("", "backward", "output"),
        ("0", "backward", "weight"),
        ("0", "backward", "bias"),
    }


def no_target(scores: Tensor) -> Tensor:
    """The mean over no image: every target is left out."""
    return nn.functional.cross_entropy(scores, torch.full((len(scores),), -100))


@pytest.mark.parametrize(
    ("loss_of_scores", "kind"),
    [
        (lambda scores: scores.mean() + torch.nan, "nan"),
        (lambda scores: (scores.mean() * 0 - 1).log(), "nan"),  # whose gradient is finite
        (lambda scores: scores.mean() + torch.tensor(0.0).log(), "inf"),
        (no_target, "nan"),
    ],
)
def test_a_bad_loss_of_finite_outputs_is_named(
    network: Tiny, loss_of_scores: Callable[[Tensor], Tensor], kind: str
) -> None:
    with watch(network):
        back(loss_of(network))
        loss = loss_of_scores(network(random_input(0)))
        assert not torch.isfinite(loss)
        with pytest.raises(NonFiniteTensorError) as caught:
            back(loss)
    gradients = torch.autograd.grad(loss, list(network.parameters()))
    assert caught.value.found == NonFiniteTensor("", 1, "loss", kind, "loss", ())
    assert "in the loss" in str(caught.value)
    for gradient in gradients:  # of which none would have told
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize(
    "backward",
    [
        lambda loss, _: torch.autograd.backward([loss]),
        lambda loss, _: torch.autograd.backward(tensors=loss),
        torch.autograd.grad,
        lambda loss, weight: torch.autograd.grad(outputs=loss, inputs=weight),
    ],
)
def test_a_loss_is_seen_however_its_backward_pass_is_begun(
    network: Tiny, backward: Callable[[Tensor, Tensor], object]
) -> None:
    with watch(network, record=True) as bad_tensors:
        backward(network(random_input(0)).mean() + torch.inf, network.head.weight)
        backward(network(random_input(0)).mean(), network.head.weight)
    assert bad_tensors == [NonFiniteTensor("", 0, "loss", "inf", "loss", ())]


def test_a_scaler_may_let_gradients_overflow_and_nothing_else(network: Tiny) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    with watch(network, scaler=scaler):
        score = network(random_input(0) * 1e8).sum()
        back(scaler.scale(score - score.detach()))
        gradient = network.conv1.weight.grad
        assert gradient is not None
        assert not torch.isfinite(gradient).all()
        scaler.step(optimiser)
        scaler.update()
        with pytest.raises(NonFiniteTensorError, match="in the output of conv1"):
            network(random_input(0) * torch.nan)


@pytest.fixture
def as_on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let results be read later, as on a device that computes beside Python."""
    monkeypatch.setattr(watching, "IMMEDIATE", set())


@pytest.mark.usefixtures("as_on_a_card")
def test_on_a_card_a_bad_tensor_is_told_once_the_backward_pass_has_ended(network: Tiny) -> None:
    stopped = []
    with torch.no_grad():
        network.conv1.weight[0] = torch.nan
    with watch(network):
        loss = loss_of(network)  # not here: nothing waits within a forward pass
        with pytest.raises(NonFiniteTensorError) as caught:
            back(loss)
        stopped.append(caught.value.found)
        with torch.no_grad():
            network(random_input(0))
            with pytest.raises(NonFiniteTensorError) as caught:
                network(random_input(0))  # as the next one begins, without a backward pass
        stopped.append(caught.value.found)
    with pytest.raises(NonFiniteTensorError) as caught, torch.no_grad(), watch(network):
        network(random_input(0))
    stopped.append(caught.value.found)
    first = NonFiniteTensor("conv1", 0, "forward", "nan", "output", (1, 4, 16, 16))
    assert stopped == [first, replace(first, call=1), first]
    assert hook_count(network) == 0


@pytest.mark.parametrize(("bad", "kind"), [(torch.nan, "nan"), (-torch.inf, "inf")])
@pytest.mark.usefixtures("as_on_a_card")
def test_on_a_card_a_bad_gradient_and_a_bad_loss_are_told_in_their_order(
    network: Tiny, bad: float, kind: str
) -> None:
    chain = nn.Sequential(network.conv1, nn.ReLU(inplace=True), Between(bad), network.conv2)
    with watch(chain), pytest.raises(NonFiniteTensorError) as caught:
        back(chain(random_input(0)).sum())
    assert caught.value.found == NonFiniteTensor("1", 0, "backward", kind, "output", (1, 4, 16, 16))
    with watch(network, record=True) as bad_tensors:
        back(loss_of(network) + bad)
    assert [(each.phase, each.kind) for each in bad_tensors] == [("loss", kind)]


@pytest.mark.usefixtures("as_on_a_card")
def test_on_a_card_nothing_is_read_within_a_step_and_large_numbers_are_fine(network: Tiny) -> None:
    with watch(network), profile(activities=[ProfilerActivity.CPU]) as profiled:
        for seed in range(2):
            back(loss_of(network, seed))
        network(3e38 * torch.eye(16).expand(1, 3, 16, 16) * 1e-3)
    waits = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::is_nonzero"}
    assert not waits & {event.key for event in profiled.key_averages()}
