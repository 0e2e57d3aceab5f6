"""The explorer in a real JupyterLab, with a kernel that all notebooks here share."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from hookviz.images.samples import samples
from tests.e2e.jupyter import Jupyter, Notebook, jupyter_lab
from tests.e2e.screen import IS_MAP_PAINTED, read_number

BEGIN = f"""
import json, sys, threading, torch, hookviz
from tests.networks import Tiny, seeded

photo = {str(samples()[0].path)!r}
steps = hookviz.Preprocess(resize=32, crop=32)
network = seeded(Tiny)
"""
SHOW = "widget = hookviz.explore(network, photo, preprocess=steps)\nwidget"


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    with jupyter_lab(tmp_path_factory.mktemp("jupyter")) as lab:
        yield lab


@pytest.fixture(autouse=True)
def room(page: Page) -> None:
    """A window in which all cells of a notebook are seen at once."""
    page.set_viewport_size({"width": 1440, "height": 1700})


def explorer(notebook: Notebook, cell: int) -> Locator:
    """A cell's explorer, once it has painted its tiles."""
    found = notebook.cell(cell).locator(".hookviz-explorer")
    expect(found.locator("figure .stage[data-painted]").first).to_be_visible()
    return found


def click_tile(shown: Locator, channel: int) -> None:
    """Click the middle of a tile."""
    stage = shown.locator("figure .stage").first
    lie = json.loads(str(stage.get_attribute("data-layout")))
    row, column = divmod(channel, lie["columns"])
    stage.click(
        position={
            "x": column * (lie["wide"] + lie["gap"]) + lie["wide"] / 2,
            "y": row * (lie["high"] + lie["gap"]) + lie["high"] / 2,
        }
    )
    expect(shown.get_by_role("heading", name=f"Channel {channel}", exact=True)).to_be_visible()


TELL = """
seen = []
layer = network.get_submodule(widget.layer)
handle = layer.register_forward_hook(lambda *call: seen.append(call[2].clone()))
with torch.no_grad():
    network.eval()(widget.capture.input)
handle.remove()
values = widget.capture[widget.layer].values
value = values[(widget.channel, *widget.cell)].item()
print(json.dumps({
    "layer": widget.layer, "channel": widget.channel, "cell": widget.cell,
    "value": value, "equal": torch.equal(seen[0][0], values),
    "streamlit": "streamlit" in sys.modules,
}))
"""


LISTS = """explorer => {
  const root = explorer.querySelector(":scope > div").shadowRoot;
  const lists = [...root.querySelectorAll("select")].filter(list => list.getClientRects().length);
  return {
    columns: getComputedStyle(root.querySelector(".columns")).gridTemplateColumns.split(" ").length,
    lists: lists.length,
    cut: lists.filter(list => {
      const whole = list.cloneNode();
      whole.style.cssText = "position: absolute; width: max-content; max-width: none";
      whole.append(list.selectedOptions[0].cloneNode(true));
      list.after(whole);
      const wide = whole.getBoundingClientRect().width;
      whole.remove();
      return list.getBoundingClientRect().width < wide - 0.5;
    }).map(list => list.ariaLabel),
  };
}"""


def check_narrow(page: Page, shown: Locator) -> None:
    """A narrow output stacks its columns and cuts no choice."""
    beside = page.viewport_size["width"] - shown.evaluate("it => it.clientWidth")  # type: ignore[index]
    for width, columns in ((1280, 2), (930, 1), (628, 1)):
        page.set_viewport_size({"width": width + beside, "height": 1700})
        page.wait_for_function(
            "width => document.querySelector('.hookviz-explorer').clientWidth === width", arg=width
        )
        assert shown.evaluate(LISTS) == {"columns": columns, "lists": 1, "cut": []}, width
    click_tile(shown, 3)  # and what lies over the tiles leaves the one that was clicked in sight
    sheet = shown.locator(".inspector-place").bounding_box()
    stage = shown.locator("figure .stage").first
    expect(stage).to_be_in_viewport()
    box = stage.bounding_box()
    assert sheet is not None
    assert box is not None
    assert box["y"] + json.loads(str(stage.get_attribute("data-layout")))["high"] <= sheet["y"]


@pytest.mark.promise
def test_the_next_cell_computes_with_what_was_clicked(jupyter: Jupyter, page: Page) -> None:
    notebook = jupyter.open(page, "click.ipynb", BEGIN + SHOW, TELL, "widget.channel = 1")
    notebook.run(0)
    shown = explorer(notebook, 0)
    click_tile(shown, 2)
    why = shown.get_by_role("heading", name=re.compile("^Why"))
    read = read_number(why.text_content())
    notebook.run(1)
    told = json.loads(notebook.text(1))
    assert (told["layer"], told["channel"], told["equal"]) == ("conv1", 2, True)
    assert read == pytest.approx(told["value"], rel=6e-3)
    assert f"row {told['cell'][0]}, column {told['cell'][1]}" in (why.text_content() or "")
    assert not told["streamlit"]
    notebook.run(2)
    expect(shown.get_by_role("heading", name="Channel 1", exact=True)).to_be_visible()
    check_narrow(page, shown)
    page.set_viewport_size({"width": 1440, "height": 1700})
    shown.get_by_role("button", name="Whole network").click()
    page.wait_for_function(IS_MAP_PAINTED)


def test_two_explorers_and_jupyter_have_keys_of_their_own(jupyter: Jupyter, page: Page) -> None:
    """The second is a capture that shows itself, in the colours of the page."""
    other = "hookviz.capture(hookviz.load_model('shapesnet'), photo)"
    notebook = jupyter.open(page, "two.ipynb", BEGIN + SHOW, other)
    notebook.run(0)
    notebook.run(1)
    first, second = explorer(notebook, 0), explorer(notebook, 1)
    layers = [each.locator(".layer-row") for each in (first, second)]
    click_tile(second, 3)
    stage = second.locator("figure .stage").first
    painted = str(stage.get_attribute("data-painted"))
    page.keyboard.press("n")
    expect(layers[1]).to_have_attribute("data-layer", "stage1.first.conv")
    expect(stage).not_to_have_attribute("data-painted", painted)  # else Enter picks none of them
    # Jupyter would add a cell, cut one, edit one
    for key in ("b", "a", "x", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(second.get_by_role("heading", name="Channel 4", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(second.get_by_role("heading", name="Channel 4", exact=True)).to_be_hidden()
    expect(page.locator(".jp-Notebook-cell")).to_have_count(2)
    assert layers[0].get_attribute("data-layer") == "conv1"
    expect(first.locator(".hv-picked")).to_be_hidden()

    painted = str(stage.get_attribute("data-painted"))
    notebook.theme("JupyterLab Dark")
    expect(stage).not_to_have_attribute("data-painted", painted)
    expect(second.locator(".alone")).to_have_css("color-scheme", "dark")
    notebook.theme("JupyterLab Light")
    expect(stage).to_have_attribute("data-painted", painted)


def test_a_network_in_training_is_looked_at_again(jupyter: Jupyter, page: Page) -> None:
    """And asked meanwhile: in a JupyterLab with subshells a click is answered while a cell runs."""
    train = """
optimiser = torch.optim.SGD(network.parameters(), lr=1.0)
network.train()(torch.ones(4, 3, 32, 32)).square().sum().backward()
optimiser.step()
was = widget.capture["conv1"].values
widget.refresh()
asked = threading.Event()
widget.observe(lambda change: asked.set(), "channel")
assert asked.wait(60)
print(json.dumps([(widget.capture["conv1"].values - was).abs().max().item(), widget.channel]))
"""
    notebook = jupyter.open(page, "train.ipynb", BEGIN + SHOW, train)
    notebook.run(0)
    shown = explorer(notebook, 0)
    stage = shown.locator("figure .stage").first
    painted = str(stage.get_attribute("data-painted"))
    notebook.start(1)
    expect(stage).not_to_have_attribute("data-painted", painted)
    click_tile(shown, 1)
    expect(shown.get_by_role("heading", name=re.compile("^Why"))).to_be_visible()
    page.wait_for_function("() => window.hookvizRan")
    moved, channel = json.loads(notebook.text(1))
    assert moved > 1e-4
    assert channel == 1


@pytest.mark.by_day
def test_without_subshells_a_click_says_that_the_kernel_is_busy(
    jupyter: Jupyter, page: Page
) -> None:
    """What it was asked before it hears again after a refresh, so a loop that trains is seen."""
    train = """
import time
with torch.no_grad():
    network.conv1.weight.neg_()
widget.refresh()
while not go.exists():
    time.sleep(0.05)
"""
    go = jupyter.folder / "go"
    with jupyter.setting("apputils-extension/kernels-settings", {"commsOverSubshells": "disabled"}):
        begin = f"{BEGIN}import pathlib; go = pathlib.Path({str(go)!r})\n{SHOW}"
        notebook = jupyter.open(page, "busy.ipynb", begin, train)
        notebook.run(0)
        shown = explorer(notebook, 0)
        stage = shown.locator("figure .stage").first
        painted = str(stage.get_attribute("data-painted"))
        notebook.start(1)
        expect(stage).not_to_have_attribute("data-painted", painted)
        click_tile(shown, 1)
        expect(shown.locator(".explorer > .status")).to_contain_text("The kernel is busy")
        go.touch()
        expect(shown.get_by_role("heading", name=re.compile("^Why"))).to_be_visible()
        expect(shown.locator(".explorer > .status")).to_be_hidden()


@pytest.mark.by_day
def test_a_restart_is_told_of_and_a_saved_notebook_keeps_the_picture_of_what_was_shown(
    jupyter: Jupyter, page: Page
) -> None:
    notebook = jupyter.open(page, "saved.ipynb", BEGIN + SHOW)
    notebook.run(0)
    shown = explorer(notebook, 0)
    picture = notebook.cell(0).locator(".jp-RenderedImage img")
    expect(picture).to_be_hidden()
    before = str(picture.get_attribute("src"))
    shown.get_by_role("button", name="Next").click()
    expect(picture).not_to_have_attribute("src", before)
    kept = str(picture.get_attribute("src"))
    notebook.save()
    notebook.restart()
    shown.locator("figure .stage").first.click(position={"x": 10, "y": 10})
    expect(shown.locator(".hookviz-notice")).to_be_visible()
    shown.get_by_role("button", name="Previous").click()
    expect(shown.get_by_text("The kernel was restarted: run this cell again")).to_have_count(1)
    notebook.run(0)
    click_tile(explorer(notebook, 0), 1)
    expect(shown.get_by_role("heading", name=re.compile("^Why"))).to_be_visible()
    page.goto("about:blank")
    jupyter.end_kernels()
    page.goto(jupyter.url("saved.ipynb"))
    expect(picture).to_be_visible()
    expect(picture).to_have_attribute("src", kept)
    assert picture.evaluate("image => image.naturalWidth") > 50
