"""What the kernel's side of the explorer says, takes and refuses; a browser is in e2e."""

import gc
import io
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from traitlets import TraitError

import hookviz
from hookviz.drawing.grid_page import grid_sheet
from hookviz.errors import HookVizError, SettingError, UnknownLayerError
from hookviz.explorer.question import NotThereError
from hookviz.explorer.view import Cell, View
from hookviz.language.catalogs import languages
from hookviz.notebook import kernel
from hookviz.notebook.widget import ExplorerWidget, SavedPicture, client_script, client_start
from hookviz.types import Model
from tests.networks import Tiny, random_input, seeded
from tests.node import run_node
from tests.notebook.comms import client_comms, client_of
from tests.plain_hooks import every_output

BUSY = "The kernel is busy: this is answered when its cell has run."
WAIT_S = 20


@pytest.fixture(autouse=True)
def comms(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with client_comms(monkeypatch):
        yield


def plain(network: nn.Module, layer: str, image: Tensor) -> Tensor:
    """What a layer puts out for an input, by a plain hook in evaluation mode."""
    was = network.training
    output: Tensor = every_output(network.eval(), image)[layer][0][0]
    network.train(was)
    return output


def test_what_is_chosen_here_is_shown_there(noise: Tensor) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise)
    client = client_of(widget)
    assert (widget.layer, widget.channel, widget.cell, client.state["view"]) == (
        "conv1",
        None,
        None,
        {},
    )
    widget.layer = "conv2"
    widget.channel = 3
    assert widget.cell is None  # the strongest
    widget.cell = (1, 2)
    rows, columns = widget.capture["conv2"].values.shape[1:]
    link = {"layer": "conv2", "channel": "3", "cell": f"1,2,{rows},{columns}"}
    assert client.state["view"] == link
    assert widget.view == View(layer="conv2", channel=3, cell=Cell(1, 2, rows, columns))
    widget.view = {"layer": "conv1", "channel": 2, "patches": True, "sort": "mean", "scale": None}
    assert client.state["view"] == {
        "layer": "conv1",
        "channel": "2",
        "patches": "true",
        "sort": "mean",
    }


def test_what_is_chosen_there_is_read_here(noise: Tensor) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise, view={"layer": "conv2"})
    client = client_of(widget)
    seen: list[tuple[str, object]] = []
    widget.observe(
        lambda change: seen.append((change["name"], change["new"])), ["layer", "channel", "cell"]
    )
    client.choose(layer="conv1", channel="1", cell="4,8,16,16")
    assert dict(seen) == {"layer": "conv1", "channel": 1, "cell": (4, 8)}
    client.choose(layer="conv2", channel="1", cell="4,8,16,16")  # the same place on a smaller map
    rows, columns = widget.capture["conv2"].values.shape[1:]
    assert widget.cell == Cell(4, 8, 16, 16).on(rows, columns)
    client.choose(layer="conv1", channel="5")  # of the other layer's six
    assert widget.channel is None
    client.choose(layer="gone")
    assert widget.layer == "conv1"


@pytest.mark.parametrize(
    ("trait", "value", "error", "words"),
    [
        ("layer", "conv3", UnknownLayerError, "'conv3'. Did you mean"),
        ("layer", "head", UnknownLayerError, "'head'"),
        ("channel", 4, NotThereError, "conv1 has no channel 4: its channels are 0 to 3"),
        ("channel", -1, NotThereError, "no channel -1"),
        ("cell", (16, 0), NotThereError, "its rows are 0 to 15"),
        ("cell", (0, 99), NotThereError, "its columns are 0 to 15"),
        ("cell", 3, TraitError, "cell"),
        ("view", {"layr": "conv1"}, SettingError, "Did you mean 'layer'"),
        ("view", {"sort": "meen"}, SettingError, "Did you mean 'mean'"),
        ("view", 3, TraitError, "the words of a link"),
    ],
)
def test_what_is_not_there_is_refused_and_changes_nothing(
    noise: Tensor, trait: str, value: object, error: type[Exception], words: str
) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise)
    before = widget.view
    with pytest.raises(error, match=words):
        setattr(widget, trait, value)
    assert widget.view == before


def test_the_capture_is_that_of_plain_hooks(noise: Tensor) -> None:
    network = seeded(Tiny).train()
    widget = ExplorerWidget(network, noise)
    for layer in ("conv1", "conv2"):
        widget.layer = layer
        shown = widget.capture
        assert torch.equal(shown[layer].values, plain(network, layer, shown.input))
    assert network.training
    widget.view = {"layer": "conv1", "after": "ReLU"}
    assert list(widget.capture) == ["conv1", "relu", "relu#1"]  # every call of it


def test_it_begins_where_it_is_told_and_a_wrong_start_is_refused(noise: Tensor) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise, view={"layer": "conv2", "channel": 1}, height=400)
    assert (widget.layer, widget.channel) == ("conv2", 1)
    assert client_of(widget).state["_home"]["height"] == 400
    with pytest.raises(UnknownLayerError, match="conv9"):
        ExplorerWidget(seeded(Tiny), noise, view={"layer": "conv9"})


def test_a_network_in_training_is_seen_as_it_was_until_it_is_refreshed(noise: Tensor) -> None:
    network = seeded(Tiny)
    widget = ExplorerWidget(network, noise, view={"channel": 1})
    client = client_of(widget)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    keys = {client.state["_subject"]}
    for _epoch in range(3):
        before = widget.capture["conv1"].values
        network(noise[None] if noise.dim() == 3 else noise).square().sum().backward()
        optimiser.step()
        assert torch.equal(widget.capture["conv1"].values, before)
        widget.refresh()
        now = widget.capture["conv1"].values
        assert torch.equal(now, plain(network, "conv1", widget.capture.input))
        assert not torch.equal(now, before)
        keys.add(client.state["_subject"])
    assert len(keys) == 4
    assert widget.channel == 1
    kept = widget.model
    widget.refresh()
    assert widget.model is kept  # nothing has changed


def test_what_was_before_a_refresh_goes_out_of_memory(noise: Tensor) -> None:
    network = seeded(Tiny)
    widget = ExplorerWidget(network, noise)
    client = client_of(widget)
    client.last(client.ask("tiles"))
    gone = weakref.ref(widget.model.network)
    with torch.no_grad():
        network.conv1.weight += 1
    widget.refresh()
    gc.collect()
    assert gone() is None


def test_what_is_shown_is_told_before_a_refresh_is(noise: Tensor) -> None:
    """So that a loop in a running cell is seen, where the kernel hears no question meanwhile."""
    network = seeded(Tiny)
    widget = ExplorerWidget(network, noise)
    client = client_of(widget)
    for question in ("layers", "tiles"):
        client.last(client.ask(question))
    client.last(client.ask("file", kind="channel-csv", channel=0))
    client.said.clear()
    with torch.no_grad():
        network.conv1.weight += 1
    widget.refresh()
    assert [said["question"] for said, _ in client.said] == [{"name": "layers"}, {"name": "tiles"}]
    key = client.state["_subject"]
    assert {(said["kind"], said["subject"], said["theme"]) for said, _ in client.said} == {
        ("ahead", key, "light")
    }
    ahead, files = client.said[1]
    asked, asked_files = client.last(client.ask("tiles"))
    assert ahead["facts"]["key"] == asked["facts"]["key"]
    assert files == asked_files


def test_another_model_and_another_image_can_be_looked_at(tiny: Model, noise: Tensor) -> None:
    widget = ExplorerWidget(tiny, noise)
    other = random_input(3)
    widget.refresh(image=other)
    assert torch.equal(widget.capture.input, hookviz.prepare_input(tiny, other).tensor)
    network = seeded(Tiny)
    widget.refresh(network)
    with torch.no_grad():
        network.conv1.weight.zero_()
    widget.refresh()
    assert torch.equal(
        widget.capture["conv1"].values, plain(network, "conv1", widget.capture.input)
    )
    with pytest.raises(hookviz.ModelError, match="not int"):
        ExplorerWidget(3, noise)  # type: ignore[arg-type]
    with pytest.raises(hookviz.ModelError, match="not str"):
        widget.refresh("resnet")  # type: ignore[arg-type]
    assert torch.equal(
        widget.capture["conv1"].values, plain(network, "conv1", widget.capture.input)
    )


def test_a_model_can_be_refreshed_or_is_shown_itself(noise: Tensor) -> None:
    network = seeded(Tiny)
    widget = ExplorerWidget(hookviz.wrap(network, name="mine"), noise)
    with torch.no_grad():
        network.conv1.weight += 1
    widget.refresh()
    assert widget.model.name == "mine"
    assert torch.equal(
        widget.capture["conv1"].values, plain(network, "conv1", widget.capture.input)
    )
    model = hookviz.load_model("shapesnet")
    widget = ExplorerWidget(model, random_input(1, 64))
    assert widget.model is model
    widget.refresh()
    assert widget.model is model


def test_the_network_is_not_run_after_it_was_copied(noise: Tensor) -> None:
    network = seeded(Tiny).train()
    widget = ExplorerWidget(network, noise)
    calls: list[object] = []
    network.register_forward_pre_hook(lambda *given: calls.append(given))
    widget.layer = "conv2"
    client = client_of(widget)
    client.last(client.ask("tiles"))
    assert widget.model.network is not network
    assert calls == []
    assert network.training


class Locked(Tiny):
    """A network that nothing can copy."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.threads: set[str] = set()

    def forward(self, images: Tensor) -> Tensor:
        self.threads.add(threading.current_thread().name)
        return super().forward(images)


def test_of_a_network_that_cant_be_copied_it_answers_between_cells(noise: Tensor) -> None:
    network = seeded(Locked)
    with pytest.warns(UserWarning, match=r"Locked can't be copied: .* answers between cells"):
        widget = ExplorerWidget(network, noise)
    client = client_of(widget)
    assert widget.model.network is network
    client.choose(layer="conv2")
    number = client.ask("tiles")
    said = [said["kind"] for said, _ in client.said if said.get("number") == number]
    assert said == ["heard", "answer"]  # before the message's end, in its own thread
    assert network.threads == {threading.current_thread().name}
    key = client.state["_subject"]
    with torch.no_grad():
        network.conv1.weight += 1  # in a cell
    client.said.clear()
    client.ask("layers")  # of before
    assert client.state["_subject"] != key
    assert {said["kind"] for said, _ in client.said} == {"ahead"}
    client.ask("layers")
    assert client.said[-1][0]["kind"] == "answer"
    assert torch.equal(
        widget.capture["conv2"].values, plain(network, "conv2", widget.capture.input)
    )
    widget.refresh(seeded(Tiny))  # which can be copied
    assert widget.model.network is not network


def test_a_question_is_answered_and_a_wrong_one_refused(noise: Tensor) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise)
    client = client_of(widget)
    answer, (sprite,) = client.last(client.ask("tiles"))
    assert answer["facts"]["order"] == [0, 1, 2, 3]
    assert Image.open(io.BytesIO(sprite)).size
    number = client.ask("cell", channel=1, row=2, column=3)
    kinds = [said["kind"] for said, _ in client.said if said.get("number") == number]
    assert kinds[0] == "heard"
    assert client.last(number)[0]["kind"] == "answer"
    refused, files = client.last(client.ask("channel", channel=77))
    assert (refused["kind"], files) == ("refused", [])
    assert "no channel 77" in refused["facts"]["says"]


@pytest.mark.parametrize(
    "content",
    [
        None,
        3,
        {},
        {"ask": 3},
        {"leave": []},
        {"ask": "1", "question": {"name": 3}},
        {"leave": "no"},
    ],
    ids=str,
)
def test_a_message_can_be_anything(noise: Tensor, content: object) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise)
    client = client_of(widget)
    client.tell(content)  # type: ignore[arg-type]
    client.choose(layer=3, channel="x" * 5000)  # type: ignore[arg-type]
    assert client.said == []
    assert widget.layer == "conv1"


def test_a_picture_stands_for_it_on_paper(noise: Tensor) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise, view={"layer": "conv2"})
    data, _more = widget._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    assert data["text/plain"] == "<ExplorerWidget of Tiny, conv2>"
    grid = hookviz.make_grid(widget.capture["conv2"], scale="balanced", colormap="RdBu_r")
    assert data["image/png"] == grid_sheet(grid, "Tiny · conv2")


def test_a_closed_widget_keeps_nothing(noise: Tensor) -> None:
    widget = ExplorerWidget(seeded(Tiny), noise)
    cache = widget._about.cache
    assert cache.used > 0
    widget.close()
    assert cache.used == 0


def test_a_capture_needs_no_second_pass_while_its_network_is_the_same(
    tiny: Model, noise: Tensor
) -> None:
    captured = hookviz.capture(tiny, noise, "conv2")
    widget = ExplorerWidget.of_capture(captured, tiny)
    assert widget.layer == "conv2"
    assert widget.capture.forward_passes == 0
    assert torch.equal(widget.capture["conv2"].values, captured["conv2"].values)
    of_scores = hookviz.capture(tiny, noise, "head")
    assert ExplorerWidget.of_capture(of_scores, tiny).layer == "conv1"
    network = seeded(Tiny)
    model = hookviz.wrap(network)
    captured = hookviz.capture(model, noise, "conv2")
    with torch.no_grad():
        network.conv1.weight += 1
    with pytest.raises(HookVizError, match="Tiny has changed since"):
        ExplorerWidget.of_capture(captured, model)


def test_the_script_is_a_module_and_begins_with_its_language() -> None:
    script = client_script()
    data = json.dumps(script)
    kind = run_node(
        f"const url = URL.createObjectURL(new Blob([{data}], {{type: 'text/javascript'}}));"
        f"const text = 'data:text/javascript,' + encodeURIComponent({data});"
        "const it = await import(text); console.log(typeof it.default.render);"
    )
    assert kind.strip() == "function"
    for language in languages():
        begun = client_start(language, 500)
        assert begun["language"]["language"] == language.replace("_", "-")
        json.dumps(begun)
    assert "--hv-window: 500px" in begun["sheets"]["alone"]
    assert "--hv-accent" in begun["sheets"]["alone"]
    assert "忙" in begun["language"]["words"][BUSY]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a kernel publishes."""
    outputs: list[dict[str, Any]] = []
    publisher = SimpleNamespace(publish=lambda **output: outputs.append(output))
    running = SimpleNamespace(kernel=object(), display_pub=publisher)
    monkeypatch.setattr(kernel, "shell", lambda: running)
    return outputs


def test_of_quick_steps_the_last_is_drawn(
    published: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookviz.notebook.widget._PICTURE_DELAY_S", 0.2)
    layers, done = ["conv1"], threading.Event()

    def run(call: Callable[[], object]) -> None:
        call()
        done.set()

    picture = SavedPicture(lambda: {"text/plain": layers[-1]}, run)
    picture.follow()  # nothing was put out yet
    picture.put_out()
    for layer in ("conv2", "conv3"):
        layers.append(layer)
        picture.follow()
    assert done.wait(WAIT_S)
    assert [output["data"]["text/plain"] for output in published] == ["conv1", "conv3"]
    assert [output["update"] for output in published] == [False, True]
    assert len({output["transient"]["display_id"] for output in published}) == 1


def test_one_that_rests_or_cant_be_drawn_stays(
    published: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hookviz.notebook.widget._PICTURE_DELAY_S", 0.0)
    done = threading.Event()

    def draw() -> dict[str, str]:
        if published:
            raise HookVizError("the network shows no channels")
        return {"text/plain": "conv1"}

    def run(call: Callable[[], object]) -> None:
        call()
        done.set()

    picture = SavedPicture(draw, run)
    picture.put_out()
    picture.follow()
    assert done.wait(WAIT_S)
    assert len(published) == 1
    monkeypatch.setattr("hookviz.notebook.widget._PICTURE_DELAY_S", 3600)
    others = set(threading.enumerate())  # the timer that has drawn may be on its way out
    picture.follow()
    [timer] = set(threading.enumerate()) - others
    picture.rest()
    timer.join(WAIT_S)
    assert not timer.is_alive()
