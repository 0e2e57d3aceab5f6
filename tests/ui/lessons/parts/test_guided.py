import numpy as np
import torch
from torch import nn

import hookviz
from hookviz.lessons.layers import correlation
from hookviz.lessons.scores import own_scores
from hookviz.ui.lessons.parts.guided import OWN, PART, RANDOM, guided_at_image, weights_of
from tests.ui.lessons.parts.scenes import cat, star, untrained, with_defaults


def test_it_is_the_gradient_with_what_is_negative_dropped_at_every_relu() -> None:
    scene = star()
    network = hookviz.load_model("shapesnet").network
    image = scene.model_input.tensor.clone().requires_grad_()

    def guide(_module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        output.register_hook(lambda gradient: gradient.clamp(min=0))  # type: ignore[no-untyped-call]

    best = own_scores(scene).best
    (plain,) = torch.autograd.grad(network(image)[0, best], image)
    relus = [each for each in network.modules() if isinstance(each, nn.ReLU)]
    for relu in relus:
        relu.register_forward_hook(guide)
    (guided,) = torch.autograd.grad(network(image)[0, best], image)
    found = guided_at_image(scene, OWN)
    assert found.relus == len(relus)
    np.testing.assert_allclose(found.plain, plain[0].sum(0).numpy(), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found.guided, guided[0].sum(0).numpy(), rtol=1e-3, atol=1e-6)


def test_guided_pictures_are_alike_without_any_training_and_gradients_are_not() -> None:
    facts = PART.facts(cat(), with_defaults(PART))
    assert float(facts["plain_alike"]) < 0.05
    assert float(facts["guided_alike"]) > 0.3
    assert weights_of(cat()) == (OWN, RANDOM)
    own, random = (guided_at_image(cat(), each).guided for each in (OWN, RANDOM))
    assert facts["guided_alike"] == abs(correlation(own, random))
    assert weights_of(untrained()) == (OWN,)
    assert PART.facts(untrained(), with_defaults(PART))["guided_alike"] == 1
