"""The browser's Back and Forward, and links."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Route, expect

from hookviz.images.samples import samples
from hookviz.lenses import grad_cam
from scripts.browsing import tile_centre, wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest, choose, link_of, open_model_settings, open_more
from tests.pictures import encoded, picture

LENS = grad_cam.LENS


def seen(page: Page) -> dict[str, object]:
    """What a person is shown: the link's choices, and what stands on the screen for them."""
    at_rest(page)
    checked = page.get_by_role("radiogroup", name="Sample image").get_by_role("radio", checked=True)
    picked = page.get_by_role("heading", name=re.compile(r"^Channel \d+"))
    layer = page.get_by_role("combobox", name="Layer")  # none above the page of all questions
    return {
        "link": link_of(page),
        "sample": checked.get_attribute("aria-label"),
        "model": page.get_by_role("combobox", name="Model", exact=True).input_value(),
        "layer": layer.input_value().rpartition(" · ")[2] if layer.count() else "",
        "lens": page.get_by_role("heading", level=2).all_inner_texts(),
        "picked": picked.first.inner_text() if picked.count() else "",
        "warnings": page.get_by_text("This link asks for").count(),
    }


def comes_to(page: Page, view: dict[str, object]) -> None:
    """Wait until a person is shown this; on a busy machine a run begins late."""
    for _ in range(20):
        if seen(page) == view:
            return
    assert seen(page) == view


@pytest.mark.by_day
def test_back_leads_through_what_was_seen_one_step_an_action(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    grid = wait_for_grid(page)
    length = page.evaluate("history.length")
    views = [seen(page)]

    page.get_by_role("radio", name=samples()[1].title).click()
    grid = wait_for_grid(page, grid)
    views.append(seen(page))
    choose(page, "Layer", "stage1.first.conv")
    wait_for_grid(page, grid)
    views.append(seen(page))
    page.mouse.click(*tile_centre(page, 5))
    page.wait_for_url("**channel=5**")
    views.append(seen(page))
    assert "cell" in page.url
    choose(page, "Scale", "symmetric")
    page.wait_for_url("**scale=symmetric**")
    views.append(seen(page))
    page.get_by_role("button", name="All questions").click()
    page.wait_for_url("**lens=all**")
    views.append(seen(page))
    page.get_by_role("button", name=re.compile(f"^{re.escape(LENS.question)}")).click()
    page.wait_for_url(f"**lens={LENS.slug}**")
    views.append(seen(page))
    choose(page, "Model", "SqueezeNet (photographs)")
    page.wait_for_function("() => !location.search.includes('ShapesNet')")
    views.append(seen(page))
    assert [view["warnings"] for view in views] == [0] * len(views)
    assert page.evaluate("history.length") == length + len(views) - 1

    for view in reversed(views[:-1]):
        page.go_back()
        comes_to(page, view)
    for at in (4, 7):  # what each step holds was seen on the way back
        page.evaluate("leap => history.go(leap)", at if at == 4 else 3)
        comes_to(page, views[at])


def test_a_choice_made_before_the_scripts_are_there_is_a_step_too(page: Page, server: str) -> None:
    """Streamlit fetches what runs them when it is first needed; widgets may be there sooner."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/static/js/Html.*.js", hold)
    page.goto(f"{server}/?model=ShapesNet")
    open_model_settings(page)
    page.locator(".st-key-weights").get_by_text("random", exact=True).click()
    expect(page).to_have_url(re.compile("weights=random"))
    assert held
    assert not page.evaluate("window.hookvizLink")
    for route in held:
        route.continue_()
    page.wait_for_function("() => window.hookvizLink")
    assert "weights=random" in page.url
    expect(page.get_by_text("random weights: these predictions mean nothing")).to_be_visible()
    page.go_back()
    expect(page.locator(".st-key-weights [aria-checked=true]")).to_contain_text("pretrained")
    page.go_forward()
    expect(page.locator(".st-key-weights [aria-checked=true]")).to_contain_text("random")


def test_back_leads_through_the_sessions_own_images(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=ShapesNet")
    shown = [wait_for_grid(page)]
    page.get_by_role("radio", name="Upload").click()
    files = {"first.png": encoded(picture(1)), "second.png": encoded(picture(2))}
    for name, content in files.items():
        page.locator("input[type=file]").set_input_files(
            {"name": name, "mimeType": "image/png", "buffer": content}
        )
        shown.append(wait_for_grid(page, shown[-1]))
    recent = page.get_by_role("radiogroup", name="Your recent images")
    expect(recent.get_by_role("radio", name="second.png")).to_be_checked()
    recent.get_by_role("radio", name="second.png").focus()
    page.keyboard.press("ArrowRight")
    assert wait_for_grid(page, shown[-1]) == shown[1]
    expect(recent.get_by_role("radio", name="first.png")).to_be_checked()
    page.go_back()
    assert wait_for_grid(page, shown[1]) == shown[2]
    expect(recent.get_by_role("radio", name="second.png")).to_be_checked()
    page.go_back()
    assert wait_for_grid(page, shown[2]) == shown[1]
    page.go_back()
    assert wait_for_grid(page, shown[1]) == shown[0]
    page.go_forward()
    assert wait_for_grid(page, shown[0]) == shown[1]
    page.reload()
    assert wait_for_grid(page) == shown[1]
    page.go_forward()
    assert wait_for_grid(page, shown[1]) == shown[2]  # it comes back as well


def test_back_to_a_link_that_names_the_model_as_python_does(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=shapesvit")
    page.wait_for_url(re.compile("model=ShapesViT"))  # the page writes its own name for it
    at_rest(page)
    choose(page, "Model", "ShapesNet")
    at_rest(page)
    for _ in range(2):
        page.go_back()
        at_rest(page)
    model = page.get_by_role("combobox", name="Model", exact=True)
    expect(model).to_have_value("ShapesViT (drawings)")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)


@pytest.mark.by_day
def test_a_view_is_the_fragment_and_a_lens_is_drawn_by_it(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}&layer=stage1.first.conv&channel=5")  # as links were
    wait_for_grid(page)
    assert urlsplit(page.evaluate("location.href")).query == "model=ShapesNet"
    assert page.evaluate("location.hash") == "#layer=stage1.first.conv&channel=5"
    page.reload()
    wait_for_grid(page)
    at_rest(page)
    length, asked = page.evaluate("[history.length, hvLine.asked]")
    choose(page, "Layer", "stage2.first.conv")
    choose(page, "Scale", "symmetric")
    page.go_back()
    page.go_back()
    at_rest(page)
    assert link_of(page)["layer"] == "stage1.first.conv"
    assert page.evaluate("[history.length, hvLine.asked]") == [length + 2, asked]  # none is a run

    code = open_more(page, "Copy as code").locator("code").first  # told of what was chosen
    expect(code).to_contain_text("stage1.first.conv")
    page.goto(f"{server}/{SHAPESNET}&lens={LENS.slug}#layer=stage2.first.conv")  # shared as it is
    layer = page.get_by_role("combobox", name="Layer")
    expect(layer).to_have_value(re.compile(r"stage2\.first\.conv$"))
    at_rest(page)
    page.keyboard.press("n")
    expect(layer).to_have_value(re.compile(r"stage2\.first\.norm$"))
    page.go_back()
    expect(layer).to_have_value(re.compile(r"stage2\.first\.conv$"))
    at_rest(page)
    assert link_of(page)["layer"] == "stage2.first.conv"


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("#layer=stem.first.conv&channel=9999", "stem.first.conv has no channel 9999"),
        ("#channel=abc", "has no channel abc: its channels are 0 to"),
        ("&sample=xyz", "This link asks for the sample 'xyz', which is not here."),
        ("&lens=grad-cam&target=zzz", "This link asks for the class 'zzz', which is not here."),
    ],
)
def test_what_a_link_asks_for_in_vain_is_said(
    page: Page, server: str, link: str, words: str
) -> None:
    page.goto(f"{server}/{SHAPESNET}{link}")
    expect(page.get_by_text(words)).to_be_visible()
    at_rest(page)
    expect(page.get_by_text(words)).to_have_count(1)
