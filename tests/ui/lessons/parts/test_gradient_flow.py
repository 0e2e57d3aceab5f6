"""What the text of the lesson says of the gradient's way back."""

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
    both_ways,
    layers_on_the_way,
    way_back,
)
from hookviz.wording import number
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


def test_facts_are_of_the_chosen_class_layer_and_limit() -> None:
    scene = star()
    at = layers_on_the_way(scene)[1].name
    options = {**with_defaults(PART, limit="20"), CLASS: "4", AT: at}
    facts = PART.facts(scene, options)
    plain = {each.layer: each for each in way_back(scene, 4)}
    limit = plain[at].came * 0.2
    clamped = way_back(scene, 4, at, limit)
    assert facts["label"] == own_scores(scene).name(4)
    assert facts["hooked"] == at
    assert facts["lets"] == number(limit)
    assert facts["cut"] == pytest.approx(float((np.abs(plain[at].values) > limit).mean()))
    assert facts["whole"] == number(plain[""].norm)
    assert facts["cropped"] == number(clamped[-1].norm)


def test_at_first_it_is_the_likeliest_class_and_the_last_layer_but_one() -> None:
    scene = star()
    facts = PART.facts(scene, with_defaults(PART))
    scores = own_scores(scene)
    assert facts["label"] == scores.name(scores.best)
    assert facts["hooked"] == layers_on_the_way(scene)[-2].name
    unclamped, clamped, limit = both_ways(scene, with_defaults(PART))
    assert 0 < limit < max(each.came for each in unclamped)
    assert [each.layer for each in unclamped] == [each.layer for each in clamped]


def plain_gradients(scene: LessonScene, target: int) -> dict[str, np.ndarray]:
    """∂score/∂output of each layer, by the network's modules run one after the other."""
    model = hookviz.load_model(scene.model.name)
    names = [layer.name for layer in layers_on_the_way(scene)]
    modules = dict(model.network.named_modules())
    outputs: dict[str, torch.Tensor] = {}
    image = scene.model_input.tensor.clone().requires_grad_()

    def keep(name: str):  # type: ignore[no-untyped-def]
        def hook(_module, _inputs, output):  # type: ignore[no-untyped-def]
            outputs[name] = output
            return output.clone()  # so that no ReLU behind it writes into it

        return hook

    handles = [modules[name].register_forward_hook(keep(name)) for name in names]
    try:
        score = model.network(image)[0, target]
    finally:
        for handle in handles:
            handle.remove()
    gradients = torch.autograd.grad(score, [*(outputs[name] for name in names), image])
    return {
        name: gradient[0].numpy() for name, gradient in zip([*names, IMAGE], gradients, strict=True)
    }


def test_they_are_those_of_autograd_from_the_last_layer_to_the_image() -> None:
    for scene, target in ((star(), 3), (cat(), 285)):
        expected = plain_gradients(scene, target)
        found = way_back(scene, target)
        names = [layer.name for layer in layers_on_the_way(scene)]
        assert [each.layer for each in found] == [*names[::-1], IMAGE]
        for each in found:
            np.testing.assert_allclose(each.values, expected[each.layer], rtol=1e-3, atol=1e-6)
            norm = np.sqrt((expected[each.layer].astype(float) ** 2).sum())
            assert abs(each.norm - norm) < 1e-3 * norm
            channels = (expected[each.layer].astype(float) ** 2).sum((1, 2))
            assert channels[each.longest] > 0.999 * channels.max()


def test_a_clamp_cuts_at_its_layer_and_changes_those_before_alone() -> None:
    scene = star()
    names = [layer.name for layer in layers_on_the_way(scene)]
    at = names[2]
    plain = {each.layer: each for each in way_back(scene, 3)}
    limit = plain[at].came / 10
    clamped = {each.layer: each for each in way_back(scene, 3, at, limit)}
    np.testing.assert_allclose(
        clamped[at].values, np.clip(plain[at].values, -limit, limit), rtol=1e-5
    )
    assert clamped[at].came == plain[at].came
    for name in names[3:]:
        assert np.array_equal(clamped[name].values, plain[name].values)
    for name in (*names[:2], IMAGE):
        assert clamped[name].norm < 0.9 * plain[name].norm


def test_what_is_clamped_goes_on_as_autograd_hands_it_on() -> None:
    """The clamped gradient, handed to plain autograd at that layer, gives the image's."""
    scene = star()
    at = layers_on_the_way(scene)[-2].name
    plain = {each.layer: each for each in way_back(scene, 3)}
    limit = plain[at].came / 10
    (image,) = (each for each in way_back(scene, 3, at, limit) if each.layer == IMAGE)
    model = hookviz.load_model(scene.model.name)
    pixels = scene.model_input.tensor.clone().requires_grad_()
    kept: list[torch.Tensor] = []

    def replace(gradient: torch.Tensor) -> torch.Tensor:
        return gradient.clamp(-limit, limit)

    def hook(_module, _inputs, output):  # type: ignore[no-untyped-def]
        kept.append(output)
        output.register_hook(replace)

    handle = dict(model.network.named_modules())[at].register_forward_hook(hook)
    score = model.network(pixels)[0, 3]
    handle.remove()
    (expected,) = torch.autograd.grad(score, [pixels])
    np.testing.assert_allclose(image.values, expected[0].numpy(), rtol=1e-3, atol=1e-6)


def test_no_hook_is_left_and_no_gradient() -> None:
    scene = star()
    way_back(scene, 3)
    network = scene.model.network
    assert not any(module._forward_hooks for module in network.modules())
    assert all(each.grad is None for each in network.parameters())
