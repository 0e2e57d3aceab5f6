"""Numbers and names that the parts of a lesson show, by the facts that their text has of them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamlit.testing.v1 import AppTest

from hookviz.lessons.part import Fact, Options
from hookviz.ui.lessons.picks import MOVED

Found = Mapping[str, str]
TEXT = '<div class="hv-lesson-text">'


def without_marks(html: str) -> str:
    return re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)


@dataclass(frozen=True)
class Panel:
    """What stands on the page beside the text, and how the controls of a part stand."""

    page: AppTest
    key: str
    options: Options

    def html(self) -> str:
        """All that is written as HTML but for the lesson's text, without its marks."""
        return without_marks(self.raw())

    def raw(self) -> str:
        pieces: Any = self.page.get("html")
        return "\n".join(each.value for each in pieces if not each.value.startswith(TEXT))

    def words(self) -> str:
        """Captions, lines in bold, and what scripts print, without the marks of Markdown."""
        kinds = (self.page.caption, self.page.markdown, self.page.code)
        said = "\n".join(each.value for kind in kinds for each in kind)
        return re.sub(r"\\(?=\W)|\*\*", "", re.sub(r"</?span[^>]*>", "", said))

    def find(self, pattern: str, *names: str) -> dict[str, str]:
        """Find the names' texts as the pattern's groups, in whatever stands on the page."""
        found = re.search(pattern, f"{self.words()}\n{self.html()}")
        return dict(zip(names, found.groups(), strict=True)) if found else {}

    def chances(self, title: str) -> dict[str, str]:
        """The probabilities in a list of classes, by their labels."""
        after = self.raw().split(f'aria-label="{title}"', 1)[-1].split("</ol>", 1)[0]
        return dict(re.findall(r">([^<>]+)</span><span>([^<]+)<", after))

    @staticmethod
    def agree(fact: Fact, shown: str) -> bool:
        """Whether a fact is what is shown, to as many places as are shown."""
        if isinstance(fact, str):
            return fact == shown
        number = float(shown.replace("−", "-").replace(",", "").rstrip("%")) / (
            100 if shown.endswith("%") else 1
        )
        places = len(shown.rstrip("%").partition(".")[2]) + 2 * shown.endswith("%")
        return bool(abs(number - fact) <= 0.5 * 10**-places + 1e-9)


def _what_if(panel: Panel) -> Found:
    after = panel.chances("After")
    before = panel.chances("Before")
    label = next(iter(before))
    shown = {"label": label, "chance": before[label]}
    if panel.options["change"] != "silence" and label in after:
        shown["after_chance"] = after[label]
    found = panel.find(r"All of (\S+) changed by (\S+) of what", "layer", "share")
    if panel.options["change"] == "fool" and found:
        of_layer = {"features.0": "first_moved", "features.12.expand3x3": "last_moved"}
        name = of_layer.get(found["layer"])
        shown |= {name: found["share"]} if name else {}
    return shown


def _silenced(panel: Panel) -> Found:
    """Of the channels that the slider switches off, when none was clicked beside."""
    moved = str(panel.page.query_params.get(MOVED, ""))
    after = panel.chances("After")
    label = next(iter(panel.chances("Before")))
    if panel.options["change"] != "silence" or "flipped" in moved or label not in after:
        return {}
    is_least = "order=least" in moved
    found = panel.find(r"(\d+) of (\d+) channels of (\S+) (?:is|are) off", *_OFF)
    return {"other_chance" if is_least else "after_chance": after[label], **found}


_OFF = ("amount", "channels", "layer")


def _relu_pool(panel: Panel) -> Found:
    if panel.options["shown"] == "before":
        return {}
    if panel.options["shown"] == "relu":
        names = ("row", "column", "cell_after", "cell_before")
        return panel.find(r"Row (\d+), column (\d+): ReLU makes (\S+) of (\S+)\.", *names)
    return panel.find(r"Pooled\W+(\d+)\W+(\d+)", "pooled_rows", "pooled_columns") | panel.find(
        r"The (?:largest|average) of (\d+) is", "in_window"
    )


def _vote(panel: Panel) -> Found:
    if panel.options["shown"] == "means":
        return panel.find(r"The mean of its \d+ cells\s+(\S+)", "map_mean") | panel.find(
            r"Channel (\d+)", "map_channel"
        )
    return {}


def _flow(panel: Panel) -> Found:
    lengths = re.findall(r"length (\S+)", panel.html())
    if panel.options["clamp"] == "yes":
        said = r"The hook at (\S+) lets no number above (\S+) pass"
        return {"cropped": lengths[-1], **panel.find(said, "hooked", "lets")}
    return {"whole": lengths[-1]}


def _step(panel: Panel) -> Found:
    loss, chance = (each.value.split(" → ") for each in panel.page.metric)
    return dict(zip(("before", "after", "chance", "after_chance"), (*loss, *chance), strict=True))


def _attention(panel: Panel) -> Found:
    return panel.find(r"What each head of (\S+) weighs", "layer")


def _blind(panel: Panel) -> Found:
    found = re.search(r'hv-blind-score"><b>[^<]*</b><p>([^<]*)<', panel.raw())
    return {"standing": found[1]} if found else {}


SHOWN: Mapping[str, Callable[[Panel], Found]] = {
    "attention": _attention,
    "blind-test": _blind,
    "depth": lambda panel: panel.find(r"excite channel (\d+) most", "channel"),
    "gradient-flow": _flow,
    "relu-pool": _relu_pool,
    "scales": lambda panel: panel.find(r"Channel (\d+) of (\S+), the same", "channel", "layer"),
    "sgd-step": _step,
    "untrained": lambda panel: panel.find(r"most alike of the first (\d+):", "tried"),
    "vote": _vote,
    "what-if": lambda panel: {**_what_if(panel), **_silenced(panel)},
}
"""Of each part what it shows; of others the drawing alone has the numbers."""
