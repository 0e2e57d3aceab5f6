"""Draw pictures side by side, each with what a network says of it."""

from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

import streamlit as st

from hookviz.images.samples import Sample
from hookviz.language.saying import say
from hookviz.lessons.chances import chance
from hookviz.lessons.sample_scores import Verdict, thumbnail
from hookviz.markup import data_url


def show_strip(found: Sequence[Verdict]) -> None:
    """Show each sample with its likeliest class and that one's probability."""
    figures = "".join(map(_figure, found))
    st.html(f'<style>{_style()}</style><div class="hv-verdicts">{figures}</div>')


def show_pictures(found: Sequence[Sample]) -> None:
    """Show samples alone, small and in a row; a row is there for none, too, so nothing moves."""
    pictures = "".join(
        f'<img src="{data_url(thumbnail(sample.path), "jpeg")}" alt="{title}" title="{title}">'
        for sample, title in ((each, escape(say(each.title))) for each in found)
    )
    st.html(f'<style>{_style()}</style><div class="hv-small-pictures">{pictures}</div>')


def _figure(verdict: Verdict) -> str:
    scores, sample = verdict.scores, verdict.sample
    best = scores.best
    label, share = scores.name(best), float(scores.chances[best])
    picture = data_url(thumbnail(sample.path), "jpeg")
    return (
        f'<figure><img src="{picture}" alt="{escape(say(sample.title))}"><figcaption>'
        f'<b title="{escape(label)}">{escape(label)}</b><span>{escape(chance(share))}</span>'
        f'<i class="track"><i class="bar" style="width:{share:.2%}"></i></i></figcaption></figure>'
    )


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
