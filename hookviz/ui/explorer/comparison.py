"""Compare what is pinned as A with what is looked at, B: a row that says so, and both as drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
import torch
from numpy.typing import NDArray

from hookviz.comparing.channels import ChannelComparison, compare_maps
from hookviz.drawing.pair import Pair, draw_pair, why_unlike
from hookviz.drawing.statistics import SORTS
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.ui.components.mosaic import Face
from hookviz.ui.explorer.channel_grid import show_grid
from hookviz.ui.explorer.pinned_view import PinnedView, pinned_maps, pinned_view, unpin
from hookviz.ui.explorer.view_choice import resolve_automatic
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import Shown, View, plain
from hookviz.ui.theme import diverging

_FACES: dict[str, Face] = {"A": "a", "B": "b", "Split": "split"}
_DIFFERENCE, _CHANGE = mark("Difference"), "change"


@dataclass(frozen=True, eq=False, slots=True)
class PinnedPair:
    """The maps ``(C, H, W)`` of A, which is pinned, and of B, which is looked at.

    Attributes:
        view: A.
        a, b: the maps.
        shown: which of the two is looked at, ``"A"`` and the like.
        key: tells this pair of maps from others.
    """

    view: PinnedView
    a: NDArray[np.float32]
    b: NDArray[np.float32]
    shown: str
    key: tuple[str, ...]

    @property
    def alike(self) -> bool:
        """Whether both are of one shape, so that cell stands against cell."""
        return self.a.shape == self.b.shape

    @property
    def face(self) -> Face | None:
        """What of the pair the tiles show; None for the difference."""
        return _FACES.get(self.shown)

    @property
    def channels(self) -> ChannelComparison:
        """What each channel of B has in common with A's; of two of one shape."""
        cache, key = session_cache(), ("compared", self.key)
        channels: ChannelComparison | None = cache.get(key)
        if channels is None:
            channels = compare_maps(torch.from_numpy(self.a), torch.from_numpy(self.b))
            cache.put(key, channels, 4 * channels.correlation.nbytes)
        return channels

    def draw(self, view: View, title: str) -> Pair:
        """Draw both in the colours of one scale, or take them from the session's cache.

        `title` is what B's grid is called.
        """
        scale, colormap, signed = resolve_automatic(view)
        signed = signed if signed != colormap else diverging()
        cache, key = session_cache(), ("pair", self.key, title, view, scale, colormap, signed)
        pair: Pair | None = cache.get(key)
        if pair is None:
            channels = None
            if view.sort == _CHANGE and self.alike:
                channels = self.channels.most_changed.tolist()
            pair = draw_pair(
                self.a,
                self.b,
                titles=(self.view.step, title),
                sort=own_sort(view).sort,
                channels=channels,
                top=view.top,
                scale=scale,
                colormap=colormap,
                signed_colormap=signed,
            )
            levels = pair.a.levels.nbytes + pair.b.levels.nbytes
            # with the maps, of which a difference is drawn when it is asked for, and the sprites
            cache.put(key, pair, self.a.nbytes + self.b.nbytes + 3 * levels)
        return pair


def sorts(comparison: PinnedPair | None) -> tuple[str, ...]:
    """Return what the channels can be sorted by; those of a pair by how much they changed, too."""
    return (*SORTS, _CHANGE) if comparison is not None and comparison.alike else tuple(SORTS)


def own_sort(view: View) -> View:
    """Return the view with an order that an activation by itself has, too."""
    return view if view.sort in SORTS else replace(view, sort="index")


def show_comparison(
    maps: torch.Tensor, scene: Sequence[str], key: Sequence[str]
) -> PinnedPair | None:
    """Show the row that says what A is and which of both is shown; None where nothing is pinned.

    Args:
        maps: of B, ``(C, H, W)``.
        scene: what B's image, model and step are called.
        key: tells B's maps from others.
    """
    try:
        view = pinned_view()
        if view is None:
            return None
        queue_bar = st.empty()  # for a wait in the queue, so that what follows stays where it is
        with queue_bar.container():
            pinned = pinned_maps(view)
        queue_bar.empty()
    except HookVizError as error:
        st.warning(plain(str(error)), icon=":material/keep_off:")
        _offer_unpinning()
        return None
    a, b = pinned.numpy(), maps.numpy()
    alike = a.shape == b.shape
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="hv-compare"):
        shown = linked_choice(
            st.segmented_control,
            say("What is shown of the two"),
            ("A", "B", mark("Split"), _DIFFERENCE) if alike else ("A", "B"),
            "compare",
            first="B",
            english={"default": "B"},
            required=True,
            label_visibility="collapsed",
            width="content",
            wrap=False,
            help=say("Hold F to flip between the two.") if alike else None,
        )
        comparison = PinnedPair(view, a, b, shown or "B", (view.link, *key))
        st.caption(_says(comparison, scene))
        _offer_unpinning()
    return comparison


def _says(comparison: PinnedPair, scene: Sequence[str]) -> str:
    """Say what A is, and of B, whose image, model and step are `scene`, where it is another."""
    view = comparison.view
    of_a = (view.image, view.title, view.step)
    others = [mine for theirs, mine in zip(of_a, scene, strict=True) if theirs != mine]
    if not others:
        return say(
            "**A** is what you look at: choose another image, model or layer, and that is B."
        )
    sentence = f"**A** {plain(' · '.join(of_a))} **B** {plain(' · '.join(others))}"
    if not comparison.alike:
        sentence += f". {plain(why_unlike(comparison.a.shape, comparison.b.shape))}"
    return sentence


def show_pair(
    comparison: PinnedPair, pair: Pair, shown: Shown, on_layer: Callable[[str], None]
) -> None:
    """Show the pair as tiles, by what is chosen to be seen of it; `shown` is B's image."""
    if comparison.face is None and pair.difference is not None:
        show_grid(pair.difference, shown, on_layer)
    elif pair.alike:
        show_grid(pair.b, shown, on_layer, pair=pair, face=comparison.face or "b")
    else:
        show_grid(pair.a if comparison.face == "a" else pair.b, shown, on_layer)


def _offer_unpinning() -> None:
    st.button(
        say("Unpin A"),
        icon=":material/close:",
        on_click=unpin,
        help=say("Look at one thing again"),
        key="hv-unpin",
    )
