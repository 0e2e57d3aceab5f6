"""Instruments on a person's own network meet what can't be looked at, and the pass goes on."""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm
from torch.utils import checkpoint as checkpointing
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import hookviz
from hookviz.hooking.layer_warnings import LayerWarnings, numbers, unwrapped

INSTRUMENTS: dict[str, Callable[[nn.Module], AbstractContextManager[Any]]] = {
    "watch": hookviz.watch,
    "record": hookviz.record,
    "on_gradients": hookviz.on_gradients,
    "observe": lambda network: hookviz.observe(network, None, lambda _call: None),
    "edit": lambda network: hookviz.edit(network, None, lambda _call: None),
    "edit_inputs": lambda network: hookviz.edit_inputs(network, None, lambda _call: None),
}
GIVEN = torch.tensor([[1.0, -2.0], [0.5, 3.0], [0.0, 0.25]])


class Refusing(Tensor):
    """Whatever is asked of it, it raises; but its numbers are there."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise TypeError(f"{func} is refused")


class Unread(Tensor):
    """A tensor without numbers of its own, none of whose operations is there."""

    @staticmethod
    def __new__(cls, like: Tensor) -> "Unread":
        made: Unread = Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype)
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError("nothing can be done with it")


class Raising(Mapping[str, Tensor]):
    """A dict of a person's own that raises whatever is looked at."""

    def __getitem__(self, key: str) -> Tensor:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise AttributeError("it was closed")

    def __len__(self) -> int:
        raise AttributeError("it was closed")


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


Way = tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]
NOTHING: Callable[[Any], Tensor] = lambda _odd: torch.zeros(())  # noqa: E731
SEEN: dict[str, Way] = {
    "nested": (
        lambda x: torch.nested.as_nested_tensor([x[:2], x[2:]]),
        lambda odd: odd.to_padded_tensor(0.0).sum(),
    ),
    "jagged": (
        lambda x: torch.nested.as_nested_tensor([x[:2], x[2:]], layout=torch.jagged),
        lambda odd: odd.values().sum(),
    ),
    "sparse": (lambda x: x.to_sparse(), lambda odd: odd.to_dense().sum()),
    "csr": (lambda x: x.detach().to_sparse_csr(), NOTHING),
    "quantised": (
        lambda x: torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.quint8),
        lambda odd: odd.dequantize().sum(),
    ),
    "complex": (lambda x: torch.complex(x, x * x), lambda odd: odd.abs().sum()),
    "half": (lambda x: x.half(), lambda odd: odd.float().sum()),
    "float8": (
        lambda x: x.detach().to(torch.float8_e4m3fn),
        lambda odd: odd.float().sum(),
    ),
    "refusing": (lambda x: x.detach().as_subclass(Refusing), NOTHING),
    "words": (lambda _x: ("a", {"b": range(3)}, object(), None), NOTHING),
}
UNSEEN: dict[str, Way] = {
    "meta": (lambda x: x.to("meta"), NOTHING),
    "unread": (lambda x: Unread(x.detach()), NOTHING),
    "raising": (lambda _x: Raising(), NOTHING),
    "endless": (lambda _x: endless(), NOTHING),
}


class Puts(nn.Module):
    def __init__(self, make: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, given: Tensor) -> tuple[Tensor, Any]:
        return given * 1, self.make(given)


class Takes(nn.Module):
    def __init__(self, back: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.back = back

    def forward(self, given: tuple[Tensor, Any]) -> Tensor:
        return given[0] + self.back(given[1])


def odd(way: Way) -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2), Puts(way[0]), Takes(way[1]), nn.Linear(2, 2))


def drawn(build: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return build()


def trained(network: nn.Module) -> list[Tensor]:
    """What two steps of training compute, and what they leave behind."""
    found = []
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        for _ in range(2):
            optimiser.zero_grad()
            scores = network(GIVEN.clone())
            scores.sum().backward()
            optimiser.step()
            gradients = (each.grad.clone() for each in network.parameters())  # type: ignore[union-attr]
            found += [scores.detach(), *gradients]
    return [*found, *network.state_dict().values()]


def same(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    return len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))


class Within(nn.Module):
    """Runs a layer in a way of its own."""

    def __init__(self, layer: nn.Module, run: Callable[[nn.Module, Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.run = layer, run

    def forward(self, given: Tensor) -> Tensor:
        return self.run(self.layer, given)


def in_half(layer: nn.Module, given: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        scores: Tensor = layer(given)
    return scores.float()


def packed(layer: nn.Module, given: Tensor) -> Tensor:
    several = given[:, None].expand(3, 2, 2)
    rows = nn.utils.rnn.pack_padded_sequence(several, torch.tensor([2, 2, 1]), True)
    scores: Tensor = layer(rows)[0].data
    return scores


TRAINED: dict[str, Callable[[], nn.Module]] = {
    **{kind: partial(odd, way) for kind, way in SEEN.items()},
    "checkpoint": lambda: Checkpointed(use_reentrant=True),
    "new checkpoint": lambda: Checkpointed(use_reentrant=False),
    "selective": lambda: Checkpointed(use_reentrant=False, context_fn=selective),
    "mixed": lambda: Within(nn.Linear(2, 2), in_half),
    "packed": lambda: Within(nn.LSTM(2, 2, batch_first=True), packed),
    "spectral": lambda: spectral_norm(nn.Linear(2, 2)),
    "complex weights": lambda: Within(
        nn.Linear(2, 2, dtype=torch.complex64), lambda layer, x: layer(x.to(torch.complex64)).abs()
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of its own odd tensors
@pytest.mark.parametrize("instrument", INSTRUMENTS)
@pytest.mark.parametrize("kind", TRAINED)
def test_training_goes_on_bit_for_bit_without_a_word(instrument: str, kind: str) -> None:
    network = drawn(TRAINED[kind])
    expected = trained(copy.deepcopy(network))
    with INSTRUMENTS[instrument](network):
        found = trained(network)
    assert same(found, expected)


@pytest.mark.parametrize(
    ("instrument", "kind"),
    [
        *product(("watch", "record"), UNSEEN),
        *product(("on_gradients", "observe", "edit", "edit_inputs"), ("meta", "unread")),
    ],
)
def test_what_cannot_be_looked_at_is_said_once_and_the_training_goes_on(
    instrument: str, kind: str
) -> None:
    network = drawn(lambda: odd(UNSEEN[kind]))
    expected = trained(copy.deepcopy(network))
    looks = instrument in ("watch", "record")
    for _ in range(2):  # once in each block
        other = copy.deepcopy(network)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            with INSTRUMENTS[instrument](other):
                found = trained(other)
        assert same(found, expected)
        texts = [str(each.message) for each in said]
        assert len(texts) == looks  # of meta tensors the others ask nothing
        why = {
            "meta": "a tensor on the meta device has no numbers",
            "unread": "nothing can be done with it",
            "raising": "it was closed",
            "endless": "recursion",
        }
        for text in texts:
            assert text.startswith(f"{instrument} can't look at 1 and goes on without: ")
            assert why[kind] in text


@pytest.mark.parametrize("kind", ["raising", "endless"])
def test_gradients_of_what_is_not_odd_are_there(kind: str) -> None:
    network = drawn(lambda: odd(UNSEEN[kind]))
    expected = trained(copy.deepcopy(network))
    with pytest.warns(RuntimeWarning) as said, hookviz.on_gradients(network) as found:
        assert same(trained(network), expected)
    # Layer 1 puts it out, layer 2 is given it.
    assert [str(each.message).partition(" and goes")[0] for each in said] == [
        "on_gradients can't look at 1",
        "on_gradients can't look at 2",
    ]
    assert found["0"].outputs[0] is not None
    assert found["3"].outputs[0] is not None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "kind", ["nested", "jagged", "sparse", "csr", "complex", "float8", "refusing"]
)
def test_a_bad_number_in_an_odd_tensor_is_found(kind: str) -> None:
    network = nn.Sequential(Puts(SEEN[kind][0]))
    with hookviz.watch(network, record=True) as found:
        network(torch.ones(3, 2))
        assert found == []
        network(torch.tensor([[1.0, 2.0], [3.0, torch.nan], [5.0, 6.0]]))
    assert [(each.tensor, each.kind) for each in found if each.layer == "0"] == [
        ("output[0]", "nan"),
        ("output[1]", "nan"),
    ]


def test_sparse_gradients_are_watched_and_recorded() -> None:
    network = nn.Embedding(5, 2, sparse=True)
    chosen = torch.tensor([1, 3, 3])
    with hookviz.record(network, layers="") as log, hookviz.watch(network, record=True) as bad:
        network(chosen).sum().backward()
        assert bad == []
        (network(chosen) * torch.inf).sum().backward()
    dense = torch.zeros(5, 2)
    dense[1], dense[3] = 1, 2
    assert log.rows[0].gradient_norm == pytest.approx(float(dense.norm()))
    assert [(each.phase, each.tensor) for each in bad] == [
        ("loss", "loss"),
        ("backward", "output"),
        ("backward", "weight"),
    ]


PER_SAMPLE = {
    "vmap": lambda network: torch.vmap(network)(GIVEN),
    "jacobian": lambda network: torch.func.jacrev(network)(GIVEN[0]),
    "gradients of each": lambda network: torch.func.vmap(
        torch.func.grad(
            lambda weights, x: torch.func.functional_call(network, weights, (x,)).sum()
        ),
        (None, 0),
    )(dict(network.named_parameters()), GIVEN)["0.weight"],
    "ensemble": lambda network: torch.vmap(
        lambda weights: torch.func.functional_call(network, weights, (GIVEN,))
    )({name: torch.stack([each, each * 2]) for name, each in network.named_parameters()}),
}


@pytest.mark.parametrize("instrument", INSTRUMENTS)
@pytest.mark.parametrize("transform", PER_SAMPLE)
def test_layers_within_vmap_compute_what_they_would(instrument: str, transform: str) -> None:
    network = drawn(lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)))
    expected = PER_SAMPLE[transform](network)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with INSTRUMENTS[instrument](network):
            for _ in range(2):
                found = PER_SAMPLE[transform](network)
    assert torch.equal(found, expected)
    texts = [str(each.message) for each in said]
    assert len(texts) == len(set(texts))
    assert all("it runs within torch.vmap" in text for text in texts)
    assert all(text.startswith(f"{instrument} can't look at ") for text in texts)
    if transform == "vmap" and instrument in ("watch", "record"):
        assert [text.split()[4] for text in texts][:3] == ["0", "1", "2"]


def test_within_torch_func_without_vmap_all_is_seen() -> None:
    network = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    weights = dict(network.named_parameters())

    def loss(weights: Any) -> Tensor:
        scores: Tensor = torch.func.functional_call(network, weights, (GIVEN,))
        return scores.sum()

    with hookviz.on_gradients(network) as found, hookviz.record(network) as log:
        torch.func.grad(loss)(weights)
    (gradient,) = found["1"].outputs
    assert gradient is not None
    assert type(gradient.sum().item()) is float
    assert torch.equal(gradient, torch.ones(3, 3))
    assert log.rows[1].mean == pytest.approx(network(GIVEN).mean().item())
    with hookviz.watch(network), pytest.raises(hookviz.NonFiniteTensorError, match="output of 0"):
        torch.func.grad(loss)({name: each * torch.nan for name, each in weights.items()})


@pytest.mark.filterwarnings("ignore:.* saw no:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("instrument", INSTRUMENTS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_transformer_with_a_padding_mask(instrument: str, norm_first: bool) -> None:
    options: dict[str, Any] = {"batch_first": True, "norm_first": norm_first}
    network = drawn(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, **options), 2).eval()
    )
    given = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(3))
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        expected = network(given, src_key_padding_mask=padding)
        with INSTRUMENTS[instrument](network):
            found = network(given, src_key_padding_mask=padding)
    if norm_first:  # torch leaves its own fast path where any hook is set
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    else:
        assert bool((expected[1, 3:] == 0).all())  # it did go by way of nested tensors
        assert torch.equal(found, expected)


class Checkpointed(nn.Module):
    """Computes its first half again in the backward pass."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Dropout(0.0), nn.Linear(2, 4), nn.Tanh(), nn.Dropout(0.5))
        self.second = nn.Linear(4, 2)
        self.options = options

    def forward(self, given: Tensor) -> Tensor:
        first = checkpoint(self.first, given.requires_grad_(), **self.options)
        scores: Tensor = self.second(first)
        return scores


def selective() -> Any:
    """Sums are kept and not computed again: those of a look would be taken for the pass's."""

    def policy(_context: Any, operation: Any, *_args: Any, **_options: Any) -> Any:
        kept = operation is torch.ops.aten.sum.default
        policies = checkpointing.CheckpointPolicy
        return policies.MUST_SAVE if kept else policies.PREFER_RECOMPUTE

    return checkpointing.create_selective_checkpoint_contexts(policy)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("instrument", ["watch", "record", "on_gradients"])
def test_a_layer_that_has_no_weights_yet_gets_them(instrument: str) -> None:
    network = nn.Sequential(nn.LazyLinear(2), nn.ReLU())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with INSTRUMENTS[instrument](network):
            assert network(GIVEN).shape == (3, 2)
    assert all("can't look at 0" in str(each.message) for each in said)


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch 2.11
@pytest.mark.parametrize("instrument", ["watch", "record", "on_gradients", "observe"])
def test_a_program_that_is_traced_meanwhile_has_no_looks_in_it(instrument: str) -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def operations() -> list[str]:
        program = torch.jit.trace(network, GIVEN)  # type: ignore[no-untyped-call]
        return [node.kind() for node in program.inlined_graph.nodes()]

    expected = operations()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RuntimeWarning)
        with INSTRUMENTS[instrument](network):
            assert operations() == expected
    assert all("it is being traced" in str(each.message) for each in said)


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Writes down what is computed while it is entered."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.called: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Functions(torch.overrides.TorchFunctionMode):
    """Writes down which functions of torch are called while it is entered."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.called.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("instrument", INSTRUMENTS)
@pytest.mark.parametrize("mode", [Operations, Functions])
def test_a_mode_of_the_persons_own_sees_its_pass_alone(
    instrument: str, mode: type[Operations | Functions]
) -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with mode() as without:
        network(GIVEN).sum().backward()
    network.zero_grad()
    with INSTRUMENTS[instrument](network), mode() as counted:
        network(GIVEN).sum().backward()
    assert any(name.startswith("relu") for name in counted.called)
    assert counted.called == without.called


def test_the_callers_own_errors_are_not_ours_and_a_block_that_fails_says_nothing() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def fails(_given: Any) -> Any:
        raise ValueError("my own")

    for look in (hookviz.observe, hookviz.edit, hookviz.edit_inputs, hookviz.on_gradients):
        with look(network, "0", fails), pytest.raises(ValueError, match="my own"):
            network(GIVEN).sum().backward()
    for instrument in INSTRUMENTS.values():
        with pytest.raises(RuntimeError, match="shapes"), instrument(Paths()):
            Paths().left(torch.ones(3, 3))


def test_numbers_are_all_that_is_in_a_tensor_and_only_errors_are_kept_out() -> None:
    values = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    assert torch.equal(numbers(values.to_sparse()), values)
    assert torch.equal(numbers(values.to_mkldnn()), values)
    assert numbers(values.clone().requires_grad_()).requires_grad is False
    with pytest.raises(ValueError, match="meta"):
        numbers(values.to("meta"))
    for look in (unwrapped, torch.func.grad(lambda x: unwrapped(x).sum())):
        with pytest.raises(ValueError, match=r"torch\.vmap"):
            torch.vmap(look)(values)
    trouble = LayerWarnings("look", ZeroDivisionError)

    def fail(layer: str, error: BaseException) -> None:
        with trouble.kept_out(layer):
            raise error

    def fail_several_times() -> None:
        for layer in ("a", "", "a", "b"):
            fail(layer, RuntimeError("words\nof no use"))

    with pytest.warns(RuntimeWarning) as said:
        fail_several_times()
    assert [str(each.message) for each in said] == [
        f"look can't look at {layer} and goes on without: words"
        for layer in ("a", "the network itself", "b")
    ]
    for error in (ZeroDivisionError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error):
            fail("c", error())


class Paths(nn.Module):
    """Takes one of two paths, and has parts that no path calls."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.right = nn.Sequential(*(nn.Linear(2, 2) for _ in range(5)))
        self.several = nn.ModuleList([nn.Identity(), nn.Dropout()])
        self.weights = nn.ParameterList([torch.ones(1)])
        self.attention = nn.MultiheadAttention(2, 1, batch_first=True)

    def forward(self, given: Tensor, *, right: bool = False) -> Tensor:
        result: Tensor = self.attention(given, given, given, need_weights=False)[0]
        return self.right(given) if right else self.left(result)  # type: ignore[no-any-return]


ATTENTION = "attention.out_proj: torch.nn.MultiheadAttention uses its weights without calling it."
RIGHT = "right.0, right.1, right.2 and 2 more: the passes in the block did not call it."


@pytest.mark.parametrize("instrument", ["observe", "edit", "edit_inputs", "on_gradients", "record"])
def test_layers_that_did_not_run_are_named_once_with_the_reason(instrument: str) -> None:
    network = Paths()
    with pytest.warns(RuntimeWarning) as said, INSTRUMENTS[instrument](network):
        (network(GIVEN) + network(GIVEN)).sum().backward()
    (warning,) = said
    saw = f"{instrument} saw no call of"
    assert str(warning.message) == f"{saw} {RIGHT} {saw} {ATTENTION}"
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("layers", "named"),
    [
        (nn.Linear, f"{RIGHT} observe saw no call of {ATTENTION}"),
        ("left*", None),
        ("several*", "several, several.0 and several.1: the passes in the block did not call it."),
        (["left", "several"], "several: the passes in the block did not call it."),
        (["left", "several*"], None),
        (["left", "several.0"], "several.0: the passes in the block did not call it."),
        (nn.Identity, "several.0: the passes in the block did not call it."),
        ((name for name in ["left", "right"]), "right: the passes in the block did not call it."),
        (nn.ReLU, None),
        ([], None),
    ],
)
def test_only_layers_that_would_run_are_named(layers: Any, named: str | None) -> None:
    network = Paths()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with hookviz.observe(network, layers):
            network(GIVEN)
    expected = [f"observe saw no call of {named}"] if named else []
    assert [str(each.message) for each in said] == expected


@pytest.mark.parametrize("instrument", INSTRUMENTS)
def test_a_block_without_a_pass_says_so(instrument: str) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with INSTRUMENTS[instrument](Paths()), torch.no_grad():
            copy.deepcopy(Paths())(GIVEN)
        with hookviz.observe(Paths(), []):
            pass
    passes = "training passes" if instrument == "record" else "passes"
    expected = f"{instrument} saw nothing: the block ran no {passes} of this Paths."
    texts = [str(each.message)[: len(expected)] for each in said]
    assert texts == ([] if instrument == "watch" else [expected])


COMPILED: dict[str, Callable[[nn.Module], Any]] = {
    "wrapped": lambda network: torch.compile(network, backend="eager"),
    "in place": lambda network: network.compile(backend="eager") or network,  # type: ignore[func-returns-value]
    "forward": lambda network: (
        setattr(network, "forward", torch.compile(network.forward, backend="eager")) or network  # type: ignore[func-returns-value]
    ),
}


@pytest.mark.parametrize(
    ("instrument", "way"),
    [*((name, "wrapped") for name in INSTRUMENTS), ("record", "in place"), ("record", "forward")],
)
def test_compiled_networks_say_that_their_layers_are_not_called(instrument: str, way: str) -> None:
    inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    network = drawn(lambda: nn.Sequential(nn.Linear(2, 2), inner))
    expected = trained(copy.deepcopy(network))
    partly = copy.deepcopy(network)
    partly[1] = COMPILED[way](partly[1])  # type: ignore[operator, index]
    said = []
    for given in (partly, COMPILED[way](network)):
        torch.compiler.reset()
        with (
            pytest.warns(RuntimeWarning, match="set_stance") as warned,
            INSTRUMENTS[instrument](given),
        ):
            found = trained(given)
        assert same(found, expected)
        said += [str(each.message).partition(":")[0] for each in warned]
    assert said == [
        f"{instrument} saw no call of 1.0 and 1.1",
        f"{instrument} saw no call of 0, 1.0 and 1.1",
    ]
