import numpy as np
import pytest
import torch

import hookviz
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import own_scores
from hookviz.ui.lessons.parts.gradient_flow import (
    AT,
    CLASS,
    IMAGE,
    PART,
    gradients_back,
    layers_back,
    with_and_without_clamp,
)
from hookviz.wording import number
from tests.networks import hook_count
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


def test_facts_are_of_the_chosen_class_layer_and_limit() -> None:
    scene = star()
    at = layers_back(scene)[1].name
    facts = PART.facts(scene, {**with_defaults(PART, limit="20"), CLASS: "4", AT: at})
    plain = {each.layer: each for each in gradients_back(scene, 4)}
    limit = plain[at].largest * 0.2
    assert facts["label"] == own_scores(scene).name(4)
    assert (facts["hooked"], facts["lets"]) == (at, number(limit))
    assert facts["cut"] == pytest.approx(float((np.abs(plain[at].values) > limit).mean()))
    assert facts["whole"] == number(plain[""].norm)
    assert facts["cropped"] == number(gradients_back(scene, 4, at, limit)[-1].norm)
    at_first = PART.facts(scene, with_defaults(PART))
    assert at_first["label"] == own_scores(scene).name(own_scores(scene).best)
    assert at_first["hooked"] == layers_back(scene)[-2].name
    unclamped, _, limit = with_and_without_clamp(scene, with_defaults(PART))
    assert 0 < limit < max(each.largest for each in unclamped)


def plain_gradients(
    scene: LessonScene, target: int, at: str = "", limit: float = 0.0
) -> dict[str, np.ndarray]:
    """∂score/∂output of each layer by plain autograd, clamped on its way out of one layer."""
    network = hookviz.load_model(scene.model.name).network
    names = [layer.name for layer in layers_back(scene)]
    modules = dict(network.named_modules())
    outputs: dict[str, torch.Tensor] = {}
    image = scene.model_input.tensor.clone().requires_grad_()

    def keep(name: str):  # type: ignore[no-untyped-def]
        def hook(_module, _inputs, output):  # type: ignore[no-untyped-def]
            outputs[name] = output
            behind = output.clone()  # so that no ReLU behind it writes into it
            if name == at:
                behind.register_hook(lambda gradient: gradient.clamp(-limit, limit))
            return behind

        return hook

    handles = [modules[name].register_forward_hook(keep(name)) for name in names]
    try:
        score = network(image)[0, target]
    finally:
        for handle in handles:
            handle.remove()
    gradients = torch.autograd.grad(score, [*(outputs[name] for name in names), image])
    return {
        name: gradient[0].numpy() for name, gradient in zip([*names, IMAGE], gradients, strict=True)
    }


@pytest.mark.parametrize(("scene", "target"), [(star(), 3), (cat(), 285)])
def test_gradients_are_those_of_autograd_with_a_clamp_and_without(
    scene: LessonScene, target: int
) -> None:
    names = [layer.name for layer in layers_back(scene)]
    plain = {each.layer: each for each in gradients_back(scene, target)}
    at = names[-2]
    limit = plain[at].largest / 10
    clamped = {each.layer: each for each in gradients_back(scene, target, at, limit)}
    for found, expected in (
        (plain, plain_gradients(scene, target)),
        (clamped, plain_gradients(scene, target, at, limit)),
    ):
        assert [*found] == [*names[::-1], IMAGE]
        for name, each in found.items():
            np.testing.assert_allclose(each.values, expected[name], rtol=1e-3, atol=1e-6)
            squares = (expected[name].astype(float) ** 2).sum((1, 2))
            assert each.norm == pytest.approx(np.sqrt(squares.sum()), rel=1e-3)
            assert squares[each.longest] > 0.999 * squares.max()
    assert clamped[at].largest == plain[at].largest
    assert clamped[IMAGE].norm < 0.9 * plain[IMAGE].norm
    network = scene.model.network
    assert hook_count(network) == 0
    assert all(each.grad is None for each in network.parameters())
