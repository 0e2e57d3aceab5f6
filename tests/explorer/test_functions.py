"""What the explorer shows of functions in a network's code, against the functions themselves."""

import pytest
import torch
import torch.nn.functional as F

import hookviz
from hookviz.explorer.layers import maps, resolve
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.capturing.test_watched_pass import Article
from tests.explorer.asking import ask, asked, subject_of
from tests.networks import seeded


@pytest.fixture
def subject() -> Subject:
    return subject_of(hookviz.wrap(seeded(Article), example=(torch.zeros(1, 1, 28, 28),)))


def test_the_tree_and_the_switch_have_functions_among_the_layers(subject: Subject) -> None:
    layers = asked(subject, "layers")
    assert [each["value"] for each in layers["steps"]["options"]] == ["Conv2d", "ReLU", "MaxPool2d"]
    looked = resolve(subject, View(after="ReLU"))
    conv = subject.model.network.get_submodule("conv1")
    assert torch.equal(maps(subject, looked), F.relu(conv(subject.model_input.tensor))[0])
    view = View(layer="max_pool2d() after conv1")
    tree = asked(subject, "tree", view)
    assert [part["short"] for part in tree["parts"]][:3] == [
        *("conv1", "relu() after conv1", "max_pool2d() after conv1")
    ]
    assert tree["chosen"] == "max_pool2d() after conv1"
    assert tree["previews"]["corners"].keys() >= {"relu() after conv1"}
    assert asked(subject, "field", view)["size"] == [6, 6]
    assert asked(subject, "layers", view)["warning"] == ""


def test_a_cell_of_a_function_says_what_it_does(subject: Subject) -> None:
    view = View(layer="relu() after conv1")
    said = ask(subject, "cell", view, channel=0, row=1, column=1).facts["info"]
    assert said.startswith("relu(), a function in the code of the network, does what a ReLU layer")
    with pytest.raises(hookviz.HookVizError, match="pictures are made for layers"):
        ask(subject, "own_picture", view, channel=0, steps=1, seed=0)
