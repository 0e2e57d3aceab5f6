import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

import hookviz
from hookviz.drawing.panels import ChartPanel, ImagePanel, TextPanel, TreePanel
from hookviz.lenses.contract.lens import LensResult
from tests.codegen.script_cases import CONVNEXT, ScriptCase
from tests.networks import as_model, hook_count, random_input, seeded
from tests.tally import Tally

SCRIPTS = (ScriptCase(), ScriptCase(networks=CONVNEXT))
NOT_IN_SCRIPT = ("seconds",)  # no two passes take the same time


Edges = list[tuple[int, int]]
CALL, STEPS, FROM, MILLISECONDS, TIME, MEMORY = 2, 3, 4, 7, 8, 10  # columns of the table


def look(network: nn.Module | hookviz.Model, side: int = 16, **options: Any) -> LensResult:
    model = network if isinstance(network, hookviz.Model) else as_model(network)
    return hookviz.run_lens("trace", model, random_input(5, side), **options)


def edges(result: LensResult) -> Edges:
    return [(int(source), int(to)) for source, to in result.values["edges"]]


def tree(result: LensResult) -> TreePanel:
    panel = result.panels[2]
    assert isinstance(panel, TreePanel)
    return panel


def steps(result: LensResult) -> list[tuple[str | int | float, ...]]:
    """The rows of calls of layers, without those of the blocks."""
    return [row for row in tree(result).rows if row[STEPS] == ""]


def text(result: LensResult) -> str:
    assert isinstance(result.panels[1], TextPanel)
    return result.panels[1].text


class Convs(nn.Module):
    """A few conv layers, called by `compute` as it likes."""

    def __init__(self, compute: Callable[..., Any]) -> None:
        super().__init__()
        self.compute = compute
        self.a = nn.Conv2d(3, 4, 1)
        self.b = nn.Conv2d(4, 4, 1)
        self.c = nn.Conv2d(4, 4, 1)
        self.same = nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, images: Tensor) -> Any:
        return self.compute(self, images)


def test_a_chain(tiny: hookviz.Model) -> None:
    result = look(tiny)
    assert edges(result) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert [row[:7] for row in tree(result).rows] == [
        ("conv1", "Conv2d", 1, "", "image", "1×3×16×16", "1×4×16×16"),
        ("relu", "ReLU", 2, "", "1", "1×4×16×16", "1×4×16×16"),
        ("conv2", "Conv2d", 3, "", "2", "1×4×16×16", "1×6×7×7"),
        ("relu, call 2", "ReLU", 4, "", "3", "1×6×7×7", "1×6×7×7"),
        ("head", "Linear", 5, "", "4", "1×6", "1×5"),
    ]
    assert tree(result).depths == (0,) * 5
    assert result.values["bytes"].tolist() == [4096, 4096, 1176, 1176, 20]
    assert "makes 5 calls" in text(result)
    assert "there are no branches" in text(result)
    assert not hook_count(tiny.network)


class Leaves(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return not any(m.children())


def by_fx(network: nn.Module) -> tuple[list[str], Edges]:
    """The calls of a network and the edges between them, from torch.fx's symbolic trace."""
    sources: dict[fx.Node, set[int]] = {}
    names: list[str] = []
    edges: Edges = []
    for node in Leaves().trace(network).nodes:
        if node.op == "placeholder":
            sources[node] = {0}
            continue
        origins: set[int] = set().union(*(sources[part] for part in node.all_input_nodes))
        if node.op == "call_module":
            names.append(str(node.target))
            edges += [(source, len(names)) for source in sorted(origins)]
            origins = {len(names)}
        sources[node] = origins
    return names, edges


@pytest.mark.parametrize(
    "name",
    [
        *("resnet18", "googlenet", "shufflenet_v2_x0_5", "mobilenet_v3_small", "squeezenet1_1"),
    ],
)
def test_the_edges_are_those_of_a_symbolic_trace(name: str) -> None:
    model = hookviz.load_model(name, "random")
    result = look(model, side=64)
    names, expected = by_fx(model.network)
    assert [str(row[0]).partition(", call")[0] for row in steps(result)] == names
    assert edges(result) == expected


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda n, x: n.b(n.a(x)) + n.c(n.a(x)), [(0, 1), (1, 2), (0, 3), (3, 4)]),
        (lambda n, x: n.c((y := n.a(x)) + n.b(y)), [(0, 1), (1, 2), (1, 3), (2, 3)]),
        # an Identity stands for itself, and what goes past it does not come from it
        (lambda n, x: n.b((y := n.a(x)) * n.same(y)), [(0, 1), (1, 2), (1, 3), (2, 3)]),
        # what an in-place layer wrote over is its output, by any name
        (lambda n, x: n.b((y := n.a(x)) + n.relu(y)), [(0, 1), (1, 2), (2, 3)]),
        (lambda n, x: n.b(F.relu(n.a(x), inplace=True).flip(1)), [(0, 1), (1, 2)]),
        (lambda n, x: n.c(torch.cat([*n.a(x).chunk(2, 1)][::-1], 1)), [(0, 1), (1, 2)]),
        (lambda n, x: n.b(torch.ones(1, 4, 3, 3)), []),
        (lambda n, x: n.b(n.a(x).mul_(x.mean())), [(0, 1), (0, 2), (1, 2)]),
        (lambda n, x: n.c((y := n.a(x)).type_as(n.b(y))), [(0, 1), (1, 2), (1, 3)]),
    ],
    ids=[
        "twice",
        "add",
        "identity",
        "in place",
        "functional",
        "split",
        "constant",
        "scaled",
        "unchanged",
    ],
)
def test_functions_between_layers_join_what_they_are_given(
    compute: Callable[..., Any], expected: Edges
) -> None:
    result = look(seeded(lambda: Convs(compute)))
    assert edges(result) == expected


def test_writing_into_a_tensor_adds_to_where_it_comes_from() -> None:
    def compute(network: Convs, images: Tensor) -> Any:
        features = network.a(images)
        other = network.b(network.a(images))
        features[:, :2] = other[:, 2:]
        other += 1
        sums = torch.empty_like(features)
        torch.add(features, 1, out=sums)
        return network.c(sums)

    assert edges(look(seeded(lambda: Convs(compute)))) == [(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)]


SEEN = Tally()  # what a function closes over is copied with its network, and this is not


def test_an_identity_changes_nothing_of_what_a_pass_computes() -> None:
    def compute(network: Convs, images: Tensor) -> Any:
        features = network.a(images)
        again = network.same(features)
        again += 1  # also seen through the other name
        SEEN.append(features.clone())
        return network.b(features)

    model = as_model(seeded(lambda: Convs(compute)))
    hookviz.list_layers(model, input_shape=(3, 16, 16))
    SEEN.clear()
    look(model)
    first, *rest = SEEN
    assert len(rest) == 3
    assert all(torch.equal(first, other) for other in rest)


def test_many_sources_are_written_short() -> None:
    def compute(network: Convs, images: Tensor) -> Any:
        return network.b(sum(network.a(images) for _ in range(9)))

    result = look(seeded(lambda: Convs(compute)))
    assert tree(result).rows[-1][FROM] == "1, 2, 3, 4, 5, … (9 in all)"


def test_a_parametrised_layer_is_one_call() -> None:
    conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
    result = look(nn.Sequential(conv, nn.ReLU()))
    assert [row[0] for row in tree(result).rows] == ["0", "1"]


def test_a_slow_layer_is_the_slowest() -> None:
    class Slow(nn.Module):
        passes = Tally()

        def forward(self, batch: Tensor) -> Tensor:
            self.passes.append(1)  # one pass is slower than the others: no matter
            time.sleep(0.6 if len(self.passes) == 2 else 0.15)
            return batch + 1

    model = as_model(nn.Sequential(nn.Conv2d(3, 2, 1), Slow(), nn.ReLU()))
    hookviz.list_layers(model, input_shape=(3, 16, 16))
    Slow.passes.clear()
    result = look(model)
    seconds = result.values["seconds"]
    assert 0.15 <= seconds[1] < 0.6
    assert len(Slow.passes) == 4
    assert seconds[0] > 0
    assert "the slowest is 1 with" in text(result)
    shares = [f"{100 * share:.1f}" for share in seconds / seconds.sum()]
    assert [row[TIME] for row in tree(result).rows][1] == f"{shares[1]} %"
    times, memory = (panel for panel in result.panels if isinstance(panel, ChartPanel))
    np.testing.assert_allclose(times.series["ms"], 1000 * seconds)
    np.testing.assert_allclose(memory.series["MB"], [512 * 4e-6] * 3)
    assert times.labels == ("0", "1", "2")


def test_blocks_have_the_cost_of_their_steps_and_their_shapes_are_a_hook_s() -> None:
    model = hookviz.load_model("resnet18", "random")
    result = look(model, side=64)
    rows, depths = tree(result).rows, tree(result).depths
    modules = dict(model.network.named_modules())
    leaves = [name for name, module in modules.items() if not any(module.children())]
    assert {str(row[0]).partition(", call")[0] for row in rows} == modules.keys() - {""}
    for row, depth in zip(rows, depths, strict=True):
        assert depth == str(row[0]).count(".")
    seen: dict[str, tuple[str, str]] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, inputs: Any, output: Tensor) -> None:
            seen[name] = ("×".join(map(str, inputs[0].shape)), "×".join(map(str, output.shape)))

        return hook

    network = hookviz.load_model("resnet18", "random").network
    blocks = [name for name in modules if name and name not in leaves]
    handles = [network.get_submodule(name).register_forward_hook(keep(name)) for name in blocks]
    with torch.no_grad():
        network(random_input(5, 64))
    for handle in handles:
        handle.remove()
    of = {str(row[0]): row for row in rows}
    seconds, nbytes = result.values["seconds"], result.values["bytes"]
    for name in blocks:
        inside = [at for at, row in enumerate(steps(result)) if str(row[0]).startswith(f"{name}.")]
        row = of[name]
        assert row[STEPS] == len(inside)
        assert row[CALL] == f"{inside[0] + 1}–{inside[-1] + 1}"
        assert (row[5], row[6]) == seen[name]
        share = seconds[inside].sum() / seconds.sum()
        assert row[TIME] == (f"{100 * share:.1f} %" if share >= 0.001 else "< 0.1 %")
        assert row[MEMORY] == f"{100 * nbytes[inside].sum() / nbytes.sum():.1f} %"
    assert of["layer1"][FROM] == "4"  # what went in came from outside
    assert of["layer2.0.downsample"][FROM] == of["layer2.0"][FROM]
    assert tree(result).shown_depth == 0  # the children of the network alone


ORANGE, TEAL = (194, 96, 60), (31, 154, 157)


def has(picture: np.ndarray[Any, Any], colour: tuple[int, int, int]) -> bool:
    return bool((picture == np.array(colour)).all(-1).any())


def test_the_arcs_are_drawn_where_data_goes_past_calls(tiny: hookviz.Model) -> None:
    def picture(network: nn.Module | hookviz.Model) -> ImagePanel:
        return next(panel for panel in look(network).panels if isinstance(panel, ImagePanel))

    chain = picture(tiny)
    assert not has(chain.picture, ORANGE)
    assert not has(chain.picture, TEAL)
    assert "5 calls in a row, and 0 arcs" in chain.alt
    branched = picture(seeded(lambda: Convs(lambda n, x: n.c((y := n.a(x)) + n.b(y)))))
    assert has(branched.picture, ORANGE)
    assert has(branched.picture, TEAL)
    assert "3 calls in a row, and 1 arc between" in branched.alt
    assert branched.picture.shape[1] > branched.picture.shape[0]


def test_a_network_without_layers() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Linear(2, 2)

        def forward(self, images: Tensor) -> Tensor:
            return images * 2

    with pytest.raises(hookviz.HookVizError, match="Bare runs no layer"):
        look(Bare())
