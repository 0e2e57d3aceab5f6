import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import hookviz
from hookviz.errors import ModelError, UnknownLayerError
from hookviz.hooking.modules import (
    SharedBlock,
    compiled_parts,
    module_named,
    named_modules,
    network_of,
    plain_name,
)
from tests.networks import Tiny, random_input, seeded


def compiled(module: nn.Module) -> Any:
    return torch.compile(module, backend="eager")


@pytest.fixture
def process_group() -> Iterator[None]:
    """One process, as `torch.nn.parallel.DistributedDataParallel` needs it."""
    store = dist.HashStore()  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


WRAPPERS: dict[str, Callable[[nn.Module], Any]] = {
    "nothing": lambda network: network,
    "compile": compiled,
    "DataParallel": nn.DataParallel,
    "compiled DataParallel": lambda network: compiled(nn.DataParallel(network)),
    "DataParallel of compiled": lambda network: nn.DataParallel(compiled(network)),
    "DistributedDataParallel": nn.parallel.DistributedDataParallel,
    "compiled DistributedDataParallel": lambda network: compiled(
        nn.parallel.DistributedDataParallel(network)
    ),
    "not compiled": torch.compiler.disable,
}


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_module_in_a_wrapper_is_found_and_every_name_of_its_parts(wrapper: str) -> None:
    network = seeded(Tiny)
    given = WRAPPERS[wrapper](network)
    assert network_of(given) is network
    for name, module in given.named_modules(remove_duplicate=False):
        if any(module is part for part in network.modules()):
            plain = plain_name(name, given)
            assert network.get_submodule(plain) is module
    is_compiled = "compile" in wrapper and wrapper != "not compiled"
    assert compiled_parts(given) == (("",) if is_compiled else ())


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_instruments_look_into_every_wrapper(wrapper: str) -> None:
    network = seeded(Tiny)
    network.relu.inplace = False
    given, image = WRAPPERS[wrapper](network), random_input(0)
    expected = network(image)

    def run() -> Any:
        with torch.compiler.set_stance("force_eager"):
            return given(image)

    name = next(name for name, module in given.named_modules() if module is network.conv1)
    with hookviz.observe(given, ["conv1", name, nn.Linear]) as seen:
        assert torch.equal(run(), expected)
    assert list(seen) == ["conv1", "head"]
    assert torch.equal(seen["head"].output, expected)
    with hookviz.edit(given, name, lambda call: call.output * 0):
        assert not torch.equal(run(), expected)
    with hookviz.edit_inputs(given, "head", lambda call: call.inputs[0] * 0):
        assert torch.equal(run()[0], network.head.bias)
    with hookviz.breakpoint_at(given, name, lambda call: seen.update(paused=call)):
        run()
    assert seen["paused"].layer == "conv1"
    with hookviz.replace_parameters(given, {f"{name}.weight": torch.zeros_like}):
        assert not network.conv1.weight.any()
        assert not torch.equal(run(), expected)
    with (
        hookviz.record(given) as log,
        hookviz.on_gradients(given) as gradients,
        hookviz.clip_gradients(given, 1e-3),
        hookviz.watch(given) as bad,
    ):
        run().sum().backward()
    assert bad == []
    assert [row.layer for row in log.rows] == ["conv1", "relu", "conv2", "head"]
    assert torch.equal(gradients["head"].outputs[0], torch.ones(1, 5))  # type: ignore[arg-type]
    assert network.head.bias.grad is not None
    assert network.head.bias.grad.max() <= 1e-3


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 4, 1), compiled(nn.Sequential(nn.ReLU())))
        self.head = compiled(nn.Linear(2, 2))
        self.other = self.head._orig_mod


def test_compiled_parts_go_by_the_names_of_what_is_behind_them() -> None:
    network = Parts()
    expected = {
        "": network,
        "block": network.block,
        "block.0": network.block[0],
        "block.1": network.block[1]._orig_mod,
        "block.1.0": network.block[1]._orig_mod[0],  # type: ignore[index]
        "head": network.other,
        "other": network.other,
    }
    assert list(named_modules(network, remove_duplicate=False)) == list(expected.items())
    assert list(named_modules(network)) == list(expected.items())[:-1]
    for name, module in expected.items():
        assert module_named(network, name) is module
    assert module_named(network, "block.1._orig_mod.0") is expected["block.1.0"]
    assert module_named(network, "block._orig_mod") is network.block
    with pytest.raises(UnknownLayerError, match=r"'block\.1\.0'"):
        module_named(network, "block.1._orig_mod.1")
    assert compiled_parts(network) == ("block.1", "head")
    wrong: Any
    for wrong, kind in (
        (len, "builtin_function_or_method"),
        (None, "NoneType"),
        (nn.ReLU, "type"),
    ):
        with pytest.raises(ModelError, match=rf"torch\.nn\.Module.*Model.*not {kind}\."):
            network_of(wrong)


def test_every_way_of_compiling_a_part_is_told_and_what_is_kept_from_it_is_not() -> None:
    class Decorated(nn.ReLU):
        forward = torch.compile(nn.ReLU.forward, backend="eager")

    network = nn.Sequential(*(nn.ReLU() for _ in range(4)), Decorated())
    network[0].compile(backend="eager")
    network[1].forward = torch.compile(network[1].forward, backend="eager")
    disable: Any = torch.compiler.disable
    network[2].forward = disable(network[2].forward)
    network[3] = disable(network[3])
    assert compiled_parts(network) == ("0", "1", "4")
    network.compile(backend="eager")
    assert compiled_parts(network) == ("", "0", "1", "4")
    named = nn.Sequential(OrderedDict(module=nn.ReLU()))  # a part that keeps its name
    assert plain_name("module") == plain_name("module", named) == "module"
    assert plain_name("module.module", nn.DataParallel(named)) == "module"
    with hookviz.observe(nn.DataParallel(named), "module") as seen:
        named(torch.ones(1))
    assert list(seen) == ["module"]


def test_nothing_of_torch_compile_is_imported_for_that() -> None:
    program = """
import sys, torch, hookviz
network = torch.nn.Sequential(torch.nn.ReLU())
for look in (hookviz.on_gradients, hookviz.watch, lambda network: hookviz.observe(network, None)):
    with look(network):
        network(torch.ones(1))
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_first_thread_makes_the_change_and_the_last_undoes_it() -> None:
    done: list[str] = []

    def begin() -> Callable[[], object]:
        done.append("begun")
        return lambda: done.append("undone")

    block = SharedBlock(begin)
    inside, goes_on = threading.Event(), threading.Event()

    def stay() -> None:
        with block:
            inside.set()
            assert goes_on.wait(20)

    thread = threading.Thread(target=stay)
    with block, block:
        thread.start()
        assert inside.wait(20)
    assert done == ["begun"]  # the other thread is in it
    goes_on.set()
    thread.join(20)
    assert done == ["begun", "undone"]
    with pytest.raises(KeyboardInterrupt), block:
        raise KeyboardInterrupt
    assert done == ["begun", "undone"] * 2
