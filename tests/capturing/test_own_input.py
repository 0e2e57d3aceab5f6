"""The first look tries the input that was guessed for a network; see test_guessing.py too."""

import threading

import pytest
import torch
from torch import nn

import hookviz
from hookviz.capturing.own_input import own_shape, settle_input
from tests.networks import random_input, seeded
from tests.pictures import picture


def digits() -> nn.Module:
    """It takes 28×28 and nothing else."""
    return nn.Sequential(nn.Conv2d(1, 4, 5), nn.Flatten(), nn.Linear(4 * 24 * 24, 3))


def sizes_of(network: nn.Module) -> list[tuple[int, ...]]:
    """The shapes of what the network is called with from now on."""
    sizes: list[tuple[int, ...]] = []
    network.register_forward_pre_hook(lambda _module, args: sizes.append(tuple(args[0].shape)))
    return sizes


def test_a_look_with_a_tensor_tries_no_other_input() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    sizes = sizes_of(network)
    hookviz.capture(network, random_input(1))
    assert set(sizes) == {(1, 3, 16, 16)}


def test_a_size_that_fails_is_corrected_once_for_all_models_of_a_network() -> None:
    network = seeded(digits)
    model = hookviz.wrap(network)
    assert (model.is_guessed, model.preprocess.crop) == (True, 224)  # type: ignore[union-attr]
    assert hookviz.prepare(model, picture()).tensor.shape == (1, 1, 28, 28)
    assert (model.is_guessed, model.preprocess.crop) == (False, 28)  # type: ignore[union-attr]
    sizes = sizes_of(network)
    assert own_shape(hookviz.wrap(network)) == (1, 28, 28)
    assert sizes == []


def test_a_preprocess_that_is_given_is_not_tried() -> None:
    network = seeded(digits)
    sizes = sizes_of(network)
    model = hookviz.wrap(network, hookviz.Preprocess(resize=40, crop=40, mean=(0.5,), std=(0.5,)))
    assert own_shape(model) == (1, 40, 40)
    assert sizes == []


def test_a_function_that_prepares_images_stays_and_the_shape_is_searched() -> None:
    def prepare(_image: object) -> torch.Tensor:
        return torch.zeros(1, 28, 28)

    model = hookviz.wrap(seeded(digits), prepare)
    assert hookviz.capture(model, picture())["0"].values.shape == (4, 24, 24)
    assert model.preprocess is prepare


def test_what_runs_at_no_size_is_told_by_the_look() -> None:
    never = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(7, 7))
    with pytest.raises(hookviz.ModelError, match="7"):
        hookviz.capture(never, picture())


def test_threads_search_once() -> None:
    network = seeded(digits)
    sizes = sizes_of(network)
    settle_input(hookviz.wrap(network))
    alone = len(sizes)
    other = seeded(digits)
    sizes = sizes_of(other)
    threads = [threading.Thread(target=lambda: settle_input(hookviz.wrap(other))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sizes) == alone
