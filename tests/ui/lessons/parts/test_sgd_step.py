import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from hookviz.hooking.attention_calls import memory_of
from hookviz.lessons.scores import own_scores
from hookviz.ui.lessons.parts.sgd_step import (
    CLASS,
    OTHERS,
    PART,
    classes_to_teach,
    step_of,
    take_step,
    verdict,
)
from hookviz.wording import number
from tests.lessons.conftest import scene_of
from tests.networks import Tiny, as_model, seeded
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


def test_it_teaches_a_class_that_the_image_is_not_of_and_judges_by_the_loss_and_others() -> None:
    scene = star()
    scores = own_scores(scene)
    assert scores.best not in classes_to_teach(scene)
    options = with_defaults(PART, rate="0.01")
    facts = PART.facts(scene, options)
    assert facts["label"] == scores.name(scores.first(2)[1])
    other = {**options, CLASS: str(scores.first(3)[2])}
    assert PART.facts(scene, other)["label"] == scores.name(scores.first(3)[2])
    step = step_of(scene, options)
    assert facts["before"] == number(step.loss_before)
    assert facts["after"] == number(step.loss_after)
    assert facts["kept"] == step.kept
    good = replace(step, loss_before=2.0, loss_after=1.0, others=((1, 1), (2, 2)))
    assert "the answers that they had" in verdict(good)
    assert "2 of 2 other pictures get" in verdict(replace(good, others=((1, 3), (2, 3))))
    assert "1 of 2 other pictures gets" in verdict(replace(good, others=((1, 1), (2, 3))))
    assert "too far" in verdict(replace(good, loss_after=3.0))


def test_loss_scores_and_kernels_are_those_of_a_step_by_hand() -> None:
    for scene, target, rate in ((star(), 2, 0.01), (cat(), 282, 0.0001)):
        network = copy.deepcopy(scene.model.network).requires_grad_().eval()
        images = scene.model_input.tensor
        scores = network(images)
        loss = F.cross_entropy(scores, torch.tensor([target]))
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(network.parameters(), gradients, strict=True):
                weight.copy_(weight - rate * gradient)
            after = network(images)
        step = take_step(scene, target, rate)
        assert abs(step.loss_before - float(loss.detach())) < 1e-4
        expected = float(F.cross_entropy(after, torch.tensor([target])))
        assert abs(step.loss_after - expected) < 1e-3
        np.testing.assert_allclose(step.after.scores, after[0].numpy(), atol=1e-2)
        norm = torch.cat([each.flatten() for each in gradients]).double().norm()
        assert abs(step.norm - float(norm)) < 1e-3 * float(norm)
        old = dict(scene.model.network.named_parameters())[f"{step.layer.name}.weight"]
        new = dict(network.named_parameters())[f"{step.layer.name}.weight"]
        kept = len(step.kernels)
        np.testing.assert_array_equal(step.kernels, old[:kept].numpy())
        np.testing.assert_allclose(
            step.moved, (new.detach() - old)[:kept].numpy(), rtol=1e-2, atol=1e-6
        )


def test_a_short_step_leaves_other_images_their_answers_and_a_long_one_does_not() -> None:
    """And the shared model stays as it is, of which no weight is copied either."""
    network = star().model.network
    before = {name: each.clone() for name, each in network.state_dict().items()}
    with _Copied({memory_of(each) for each in network.parameters()}) as copied:
        short, long = take_step(star(), 2, 0.00011), take_step(star(), 2, 0.11)
    assert copied.count == 0
    assert all(torch.equal(before[name], after) for name, after in network.state_dict().items())
    assert not any(each.requires_grad for each in network.parameters())
    assert len(short.others) == len(long.others) == OTHERS
    assert short.loss_after < short.loss_before
    assert short.kept == OTHERS
    assert long.kept < OTHERS
    assert [before for before, _ in short.others] == [before for before, _ in long.others]


class _Copied(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts how often a tensor is cloned that lies in one of these pieces of memory."""

    def __init__(self, memory: set[int]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.memory, self.count = memory, 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten.clone.default:
            self.count += memory_of(args[0]) in self.memory
        return func(*args, **(kwargs or {}))


def test_a_step_beside_a_network_of_ones_own_leaves_it_as_it_is() -> None:
    scene = scene_of(as_model(seeded(Tiny)))
    network = scene.model.network.train()
    before = [(each, each.clone(), each._version) for each in network.parameters()]
    step = take_step(scene, 2, 0.1)
    assert step.loss_after < step.loss_before
    assert np.abs(step.moved).max() > 0
    for each, (known, values, version) in zip(network.parameters(), before, strict=True):
        assert each is known
        assert torch.equal(each, values)
        assert each._version == version
    assert network.training
