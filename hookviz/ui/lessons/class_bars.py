"""Draw the likeliest classes before and after a change, as two lists of bars side by side."""

from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

import streamlit as st

from hookviz.language.saying import say
from hookviz.lessons.scores import Scores
from hookviz.wording import percent

_SHOWN = 5


def show_before_and_after(
    before: Scores,
    after: Scores,
    *,
    titles: tuple[str, str] | None = None,
    written: Callable[[float], str] = percent,
) -> None:
    """Show five classes each, so that nothing moves; the one first before stands out.

    Args:
        before: scores before a change.
        after: scores after it.
        titles: what the two lists are called, before and after without.
        written: how a probability is written.
    """
    first, second = titles or (say("Before"), say("After"))
    lists = _list(first, before, before.best, written) + _list(second, after, before.best, written)
    st.html(f'<style>{_style()}</style><div class="hv-two-lists">{lists}</div>')


def _list(title: str, scores: Scores, first: int, written: Callable[[float], str]) -> str:
    chances = scores.chances
    rows = "".join(
        f"<li{' class=first' if target == first else ''}>"
        f'<span class="label" title="{escape(scores.name(target))}">'
        f"{escape(scores.name(target))}</span>"
        f"<span>{escape(written(float(chances[target])))}</span>"
        f'<span class="track"><span class="bar" style="width:{chances[target]:.2%}"></span></span>'
        "</li>"
        for target in scores.first(_SHOWN)
    )
    return f'<div><p>{escape(title)}</p><ol aria-label="{escape(title)}">{rows}</ol></div>'


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
