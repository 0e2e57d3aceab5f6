"""Every lens in the app: opened, and each of its controls used once."""

import re
import urllib.parse
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import hookviz
from hookviz.images.samples import samples
from hookviz.lenses.contract import parameters, regions, running
from hookviz.lenses.contract.lens import Lens
from scripts.browsing import settled_box
from tests.e2e.screen import at_rest, choose, look_through
from tests.every_lens import OF_ANY_NETWORK
from tests.every_way import EVERY_WAY
from tests.pictures import encoded, picture

LAYERS = {"Layer": "stage2.first.conv"}
"""Which layer to choose by a control's label; a later one for all others."""


CLIMBING = ("maximize", "dream", "inversion", "toaster")
"""Lenses whose steps are passes there and back; a few will do."""


def opened(page: Page, server: str, lens: Lens, **query: str) -> None:
    steps = {f"{lens.slug}-steps": "8"} if lens.slug in CLIMBING else {}
    link = {"model": "ShapesNet", "lens": lens.slug, **steps, **query}
    page.goto(f"{server}/?{urllib.parse.urlencode(link)}")
    page.get_by_role("heading", name=lens.question, exact=True).wait_for()
    settle(page)


def settle(page: Page, *, or_refused: bool = False) -> None:
    """Wait until the page has run to its end: its last line says how long it took.

    A choice may mean nothing together with the others; then the lens says so in its place.
    """
    end = page.get_by_text(re.compile(r"^took [\d,]+ ms$"))
    if or_refused:
        end = end.or_(page.get_by_role("status").filter(has_text=re.compile(r"\S")))
    expect(end.first).to_be_visible(timeout=60_000)
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=60_000)
    # What Streamlit loads when it is first needed moves what is below once it is there.
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=60_000)
    expect(page.get_by_role("alert").filter(has_text="went wrong")).to_have_count(0)


def _around(page: Page, parameter: parameters.Parameter) -> Locator:
    """What a control stands in: the page's row, or what opens for those beyond four."""
    main, settings = page.get_by_test_id("stMain"), page.get_by_test_id("stPopoverBody")
    at_rest(page)  # a menu that a run is about to close is seen for a moment
    drawn = isinstance(parameter, regions.RegionChoice)
    if drawn or main.get_by_text(parameter.label, exact=True).count():
        return main
    if not settings.is_visible():
        page.get_by_role("button", name="More", exact=True).click()
        settings.wait_for()
    return settings


def use(page: Page, parameter: parameters.Parameter, tmp_path: Path) -> None:
    """Change one control to something else than it shows."""
    main = _around(page, parameter)
    match parameter:
        case parameters.LayerChoice():
            choose(page, parameter.label, LAYERS.get(parameter.label, "stage3.second.conv"))
        case parameters.ClassChoice():
            box = page.get_by_role("combobox", name=parameter.label, exact=True)
            box.click()
            box.fill("star")
            page.get_by_role("option", name=re.compile(r"^star\b")).first.click()
        case parameters.OneOf():
            choose(page, parameter.label, parameter.choices[-1])
        case parameters.PixelCount():  # a single pixel would take a pass for every pixel
            field = main.get_by_role("spinbutton", name=parameter.label, exact=True)
            field.fill("40")
            field.press("Enter")
        case parameters.WholeNumber() | parameters.RealNumber():
            low, high = parameter.low, parameter.high
            other = low if parameter.default != low else min(high, low + 1)
            field = main.get_by_role("spinbutton", name=parameter.label, exact=True)
            field.fill(f"{other:g}")
            field.press("Enter")
        case parameters.Switch():
            main.get_by_text(parameter.label, exact=True).click()  # the label takes the click
        case parameters.Channels():
            field = main.get_by_role("textbox", name=parameter.label)
            field.fill("0, 2-3")
            field.press("Enter")
        case regions.RegionChoice():
            marked = page.get_by_role("application", name=re.compile(rf"^{parameter.label}: "))
            marked.press("ArrowLeft")
            expect(page).to_have_url(re.compile(f"-{parameter.name}=rect"))
        case parameters.MoreImages():
            file = tmp_path / "another.png"
            file.write_bytes(encoded(picture(5)))
            main.locator("input[type=file]").set_input_files(file)
            expect(main.get_by_text("another.png").first).to_be_visible()
        case _:
            raise AssertionError(f"no way to use {parameter}")


def one_of_each_kind() -> dict[str, list[parameters.Parameter]]:
    """By the lens's slug, controls to use: of each kind that a person meets, the first.

    By night those too that are folded away, or asked for where another choice was made.
    """
    met: set[tuple[type, bool, bool]] = set()
    used: dict[str, list[parameters.Parameter]] = {}
    for lens in OF_ANY_NETWORK:
        for parameter in lens.parameters:
            hidden = parameter.rare, parameter.matters_for is not None
            kind = (type(parameter), *(hidden if EVERY_WAY else (False, False)))
            if kind not in met:
                met.add(kind)
                used.setdefault(lens.slug, []).append(parameter)
    return used


@pytest.mark.parametrize(("slug", "used"), one_of_each_kind().items(), ids=one_of_each_kind())
def test_every_kind_of_control_works(
    page: Page, server: str, slug: str, used: list[parameters.Parameter], tmp_path: Path
) -> None:
    """Each control of each lens is used in tests/ui/lenses/test_every_control.py, with no browser.

    Lenses with all kinds of panels are opened in tests/e2e/test_threats.py.
    """
    lens = running.find_lens(slug)
    opened(page, server, lens)
    shown: Locator = page.get_by_test_id("stMain").locator(
        "img:not([hidden]), table, [data-testid=stDataFrame]"
    )
    expect(shown.first).to_be_visible()
    one_of = {each.name: each for each in lens.parameters if isinstance(each, parameters.OneOf)}
    chosen = {name: each.choices[0] for name, each in one_of.items()}
    for parameter in used:
        if not parameter.matters(chosen) and parameter.matters_for is not None:
            name, choices = parameter.matters_for  # it is not asked for until then
            if name in one_of:
                choose(page, one_of[name].label, choices[0])
                chosen[name] = choices[0]
            else:
                use(page, next(each for each in lens.parameters if each.name == name), tmp_path)
                chosen[name] = "something"
            at_rest(page)
            settle(page, or_refused=True)
        use(page, parameter, tmp_path)
        among = one_of.get(parameter.name)
        chosen[parameter.name] = among.choices[-1] if among else "something"
        at_rest(page)
        settle(page, or_refused=True)


def test_blocks_fold_by_click_and_by_key(page: Page, server: str) -> None:
    trace = running.find_lens("trace")
    opened(page, server, trace, model="ResNet-18", weights="random")
    rows = page.get_by_role("treegrid").get_by_role("row")

    def seen() -> list[str]:
        names: list[str] = rows.locator("td:first-child").filter(visible=True).all_inner_texts()
        return [name.strip() for name in names]

    children = ["conv1", "bn1", "relu", "maxpool", *(f"layer{at}" for at in range(1, 5))]
    children += ["avgpool", "fc"]
    assert seen() == children
    rows.filter(has_text="layer1").first.click()
    assert seen() == [*children[:5], "layer1.0", "layer1.1", *children[5:]]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    opened_twice = seen()
    assert opened_twice[6:9] == ["layer1.0.conv1", "layer1.0.bn1", "layer1.0.relu"]
    page.keyboard.press("ArrowRight")
    assert page.locator("tr:focus").inner_text().startswith("layer1.0.conv1")
    page.keyboard.press("ArrowLeft")  # out to its block
    page.keyboard.press("ArrowLeft")  # which closes
    assert len(seen()) == len(children) + 2
    page.keyboard.press("Home")
    page.keyboard.press("End")
    assert page.locator("tr:focus").inner_text().startswith("fc")
    assert "layer=" not in page.url  # the arrows are the table's as long as one is in it
    page.get_by_role("button", name="Unfold all").click()
    assert len(seen()) == 60 + 15
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert seen() == children


def test_the_layer_at_the_side_is_the_lens_s_layer(page: Page, server: str) -> None:
    kernels = running.find_lens("kernels")
    opened(page, server, kernels, layer="stage1.first.conv")
    expect(page.get_by_text("stage1.first.conv (Conv2d) has 48 kernels")).to_be_visible()
    choose(page, "Layer", "stage1.shortcut.conv")
    expect(page.get_by_text("stage1.shortcut.conv (Conv2d) has 48 kernels")).to_be_visible()
    assert "layer=stage1.shortcut.conv" in page.url
    tree = page.locator("nav", has=page.get_by_placeholder("Find a layer"))
    expect(tree.locator("[aria-current=true]")).to_have_attribute(
        "data-name", "stage1.shortcut.conv"
    )
    page.locator("body").press("p")
    expect(page.get_by_text("stage1.second.conv (Conv2d) has 48 kernels")).to_be_visible()
    tree.get_by_placeholder("Find a layer").fill("stem")
    tree.locator("[data-name='stem.first.conv']").click()
    expect(page.get_by_text("stem.first.conv (Conv2d) has 32 kernels")).to_be_visible()
    settle(page)
    for layer in ("stage1.second.conv", "stage1.shortcut.conv", "stage1.first.conv"):
        page.go_back()  # each of them was one step
        expect(page.get_by_text(f"{layer} (Conv2d) has 48 kernels")).to_be_visible()
        expect(page.get_by_role("combobox", name="Layer")).to_have_value(
            re.compile(rf"· {re.escape(layer)}$")
        )


def test_a_bar_and_a_tile_lead_to_their_channel_and_back_to_the_lens(
    page: Page, server: str
) -> None:
    matters = running.find_lens("channels-that-matter")
    opened(page, server, matters, layer="stage2.first.conv")
    link = page.url
    main = page.get_by_test_id("stMain")
    for element in (
        main.get_by_role("button", name=re.compile("^channel ")).nth(1),
        main.locator("figure .stage[data-painted]"),
    ):
        element.click(position={"x": 5, "y": 20})
        heading = page.get_by_role("heading", name=re.compile(r"^Channel \d+$"))
        heading.wait_for()
        expect(page.locator(".why h4")).to_be_in_viewport()
        channel = heading.inner_text().split()[1]
        assert "layer=stage2.first.conv" in page.url
        assert f"channel={channel}" in page.url
        assert "lens=" not in page.url
        page.go_back()
        settle(page)
        assert page.url == link
        expect(page.get_by_role("heading", name=matters.question, exact=True)).to_be_visible()


def test_before_and_after_are_flipped_in_one_place(page: Page, server: str) -> None:
    opened(page, server, running.find_lens("ablate"), layer="stage2.first.conv")
    stage = page.locator("figure .stage[data-painted]").first
    before = page.get_by_role("radio", name="before").first

    def below_the_top() -> float:  # of all that is there, however far it is scrolled
        top = page.locator(".st-key-hv-header").bounding_box()
        box = stage.bounding_box()
        assert top is not None
        assert box is not None
        return box["y"] - top["y"]

    settled_box(page, stage)
    painted, place = stage.get_attribute("data-painted"), below_the_top()
    before.click()
    expect(stage).not_to_have_attribute("data-painted", painted or "")
    settle(page)
    settled_box(page, stage)
    assert below_the_top() == place


@pytest.mark.promise
def test_a_long_run_leaves_nothing_of_the_lens_before_and_can_be_stopped(
    page: Page, server: str
) -> None:
    link = {"model": "ResNet-50", "weights": "random", "layer": "layer2.0.conv3"}
    page.goto(f"{server}/?{urllib.parse.urlencode({**link, 'lens': 'gradients'})}")
    main = page.get_by_test_id("stMain")
    settle(page)
    titles = main.get_by_role("heading", level=3)
    before = titles.all_inner_texts()
    assert before
    matters = running.find_lens("channels-that-matter")
    look_through(page, matters.question)
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible(timeout=60_000)
    expect(page.get_by_role("heading", name=matters.question, exact=True)).to_be_visible()
    assert not set(before) & set(titles.all_inner_texts())
    expect(page.get_by_role("combobox", name="Ask about layer")).to_have_count(0)
    expect(main.locator(".stMain figure, [data-testid=stDataFrame], h3")).to_have_count(0)
    stop.click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(stop).to_have_count(0)
    expect(page.get_by_role("button", name="Run it")).to_be_visible()
    look_through(page, "What is the network made of?")  # and the page is alive
    settle(page)


@pytest.mark.promise
def test_what_is_kept_of_a_lens_are_the_numbers_of_the_library(
    page: Page, server: str, tmp_path: Path
) -> None:
    """Every script is run in tests/codegen/test_lens_script.py."""
    opened(page, server, running.find_lens("grad-cam"), sample="star")
    expect(page.get_by_text(re.compile("^star: score"))).to_be_visible()
    star = next(sample for sample in samples() if sample.name == "star")
    expected = hookviz.run_lens("grad-cam", hookviz.load_model("shapesnet"), star.path)

    def kept(label: str) -> Path:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=True).click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        return file

    with np.load(kept("The numbers as NPZ")) as values:
        np.testing.assert_array_equal(values["map"], expected.values["map"])
    page.get_by_role("button", name="Copy as code").click()
    expect(page.get_by_text("the same numbers without HookViz")).to_be_visible()
    assert kept("The weights").stat().st_size > 100_000
    compile(kept("The script").read_text("utf-8"), "script", "exec")
