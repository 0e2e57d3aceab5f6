"""Steps of loops with accumulation, a loss scaler and several processes, against a loop by hand."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, distributed, nn
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

import hookviz
from tests.networks import Tiny, hook_count, random_input, seeded

LABEL = torch.tensor([2])


def loss_of(network: nn.Module, seed: int) -> Tensor:
    return nn.functional.cross_entropy(network(random_input(seed)), LABEL)


def norm_of(tensors: Any) -> float:
    return math.sqrt(sum(float(each.double().square().sum()) for each in tensors))


def test_an_optimisers_step_has_the_gradient_of_all_its_backward_passes() -> None:
    network = seeded(Tiny).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    gradients, updates = [], []
    with hookviz.record(network, layers=["conv1"], step=optimiser) as log:
        for start in (0, 3):
            optimiser.zero_grad()
            for seed in range(start, start + 3):
                (loss_of(network, seed) / 3).backward()  # type: ignore[no-untyped-call]
            own = [*network.conv1.parameters()]
            before = [each.detach().clone() for each in own]
            gradients.append(norm_of(each.grad for each in own))
            optimiser.step()
            assert len(log.rows) == len(gradients)  # there at once
            changes = (one - other for one, other in zip(own, before, strict=True))
            updates.append(norm_of(each.detach() for each in changes) / norm_of(before))
    assert [row.step for row in log.rows] == [0, 1]
    assert [row.gradient_norm for row in log.rows] == pytest.approx(gradients)
    assert [row.update_ratio for row in log.rows] == pytest.approx(updates, rel=1e-4)
    assert (hook_count(network), len(optimiser._optimizer_step_pre_hooks)) == (0, 0)


def test_a_scalers_factor_is_out_of_the_log_and_a_step_that_it_leaves_out_is_none() -> None:
    network = seeded(Tiny).train()
    optimiser = torch.optim.SGD(network.parameters(), lr=0.0)
    plain = torch.autograd.grad(loss_of(network, 0), [*network.head.parameters()])
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with hookviz.record(network, layers=["head"], step=optimiser) as log:
        for factor in (1.0, math.inf, 1.0):
            optimiser.zero_grad()
            scaler.scale(loss_of(network, 0) * factor).backward()  # type: ignore[no-untyped-call]
            scaler.step(optimiser)
            scaler.update()
    assert len(log.rows) == 2
    assert [row.gradient_norm for row in log.rows] == pytest.approx([norm_of(plain)] * 2, rel=1e-4)
    assert log.findings() == ()


def test_nothing_is_read_before_the_step_has_ended() -> None:
    network = seeded(Tiny).train()
    with hookviz.record(network) as log:
        loss_of(network, 0).backward()  # type: ignore[no-untyped-call]
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            loss_of(network, 1).backward()  # type: ignore[no-untyped-call]
    # The second pass begins with reading the first step, all numbers of one type at once.
    waits = {"aten::_local_scalar_dense", "aten::item", "aten::nonzero", "aten::is_nonzero"}
    assert not waits & {event.key for event in profiled.key_averages()}
    assert len({row.step for row in log.rows}) == 2


@contextmanager
def one_process(tmp_path: Path) -> Iterator[None]:
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


def halved(_state: object, bucket: GradBucket) -> torch.futures.Future[Tensor]:
    """What all processes have together, here half of what this one has."""
    future = torch.futures.Future[Tensor]()
    future.set_result(bucket.buffer() / 2)
    return future


def test_gradients_are_those_that_processes_have_put_together(tmp_path: Path) -> None:
    network = seeded(Tiny).train()
    alone = torch.autograd.grad(loss_of(network, 0), [*network.conv1.parameters()])
    with one_process(tmp_path):
        parallel = DistributedDataParallel(network)
        parallel.register_comm_hook(None, halved)
        with hookviz.record(parallel, layers=["conv1"]) as log:
            loss_of(parallel, 0).backward()  # type: ignore[no-untyped-call]
    assert log.rows[0].gradient_norm == pytest.approx(norm_of(alone) / 2)
