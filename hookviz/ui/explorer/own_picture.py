"""Make a picture of what the picked channel looks for, shown while the network makes it.

The link says how many steps and which seed, as long as such pictures are wanted; the picture
itself is the session's. Another channel has its own, so it is made as soon as it is picked up.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from hookviz.drawing.pictures import enlarged
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lenses.maximize import SEVERAL
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.maximizing import STEPS, begin
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.resuming import run_resumed
from hookviz.synthesis.settings import SynthesisMethod
from hookviz.types import Activation, Model, Pixels
from hookviz.ui.link import update_link
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import choose, plain
from hookviz.wording import number

LENS = "maximize"
"""The lens with all that can be chosen of such a picture."""

_PARAM = "made"  # of the link: steps and seed
_MOST_STEPS = 2048
_EVERY = 0.16  # seconds between two pictures: six a second are a movement
_SIDE_BY_SIDE = 16  # channels
_SIDE = 256  # pixels of a picture as it is shown


@dataclass(frozen=True, slots=True)
class _PictureRequest:
    """Steps and seed of a channel's picture, as the link says them."""

    steps: int = STEPS
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.steps}-{self.seed}"

    @classmethod
    def of_link(cls) -> "_PictureRequest | None":
        """Read what the link asks for; None where it asks for none, or for nonsense."""
        match = re.fullmatch(r"(\d{1,4})-(\d{1,9})", st.query_params.get(_PARAM, ""), re.ASCII)
        if match is None or not 1 <= int(match[1]) <= _MOST_STEPS:
            return None
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, eq=False, slots=True)
class _Picture:
    """A channel's picture as the session keeps it."""

    pixels: Pixels
    steps: int
    value: float


@dataclass(frozen=True, slots=True)
class _Unit:
    """The channel of a layer that a picture is of."""

    model: Model
    layer: str
    channel: int

    def key(self, seed: int) -> tuple[object, ...]:
        """Return the key that the unit's picture has in the session's cache."""
        return ("own picture", self.model.digest, self.layer, self.channel, seed)


class _PicturePanel:
    """The picture on the page, with its sentence and its buttons at its side."""

    def __init__(self) -> None:
        left, right = st.columns(2, gap="small", wrap=False)
        self._picture = left.empty()
        self._line, self._row = right.empty(), right.empty()

    def show(self, picture: _Picture, channel: int) -> None:
        """Show the picture in place of the one before."""
        self._picture.image(
            enlarged(picture.pixels, _SIDE),
            width="stretch",
            output_format="JPEG",
            alt=say(
                "A picture that the network made for channel {channel}, step {steps}",
                channel=channel,
                steps=picture.steps,
            ),
        )
        self._line.caption(
            say(
                "step {steps} · mean {mean_value}. One thing that it answers to, not all; "
                "untrained channels have pictures too.",
                steps=picture.steps,
                mean_value=number(picture.value),
            )
        )

    def say(self, text: str) -> None:
        """Say why there is no picture."""
        self._line.caption(plain(text))

    def offer_stop(self, unit: _Unit, seed: int) -> None:
        """Show a button that ends the run, and keeps the picture so far."""
        self._row.button(
            say("Stop"),
            key="hv-made-stop",
            icon=":material/stop:",
            on_click=_stop,
            args=(unit, seed),
        )

    def offer_more(self, unit: _Unit, request: _PictureRequest, others: Sequence[int]) -> None:
        """Show the buttons for what can be done with a finished picture."""
        with self._row.container(gap="small"):
            st.button(
                say("More steps"),
                key="hv-made-more",
                icon=":material/add:",
                on_click=update_link,
                kwargs={
                    _PARAM: str(
                        _PictureRequest(min(request.steps + STEPS, _MOST_STEPS), request.seed)
                    )
                },
                disabled=request.steps >= _MOST_STEPS,
                help=say("Go on from here"),
                type="tertiary",
            )
            st.button(
                say("Another"),
                key="hv-made-another",
                icon=":material/casino:",
                on_click=update_link,
                kwargs={_PARAM: str(_PictureRequest(STEPS, request.seed + 1))},
                help=say("A picture from another seed"),
                type="tertiary",
            )
            st.button(
                say("Random weights"),
                key="hv-made-random",
                icon=":material/compare:",
                on_click=_look_closer,
                args=(unit, request),
                kwargs={"beside_random": "true"},
                help=say(
                    "The same beside it for a network that was never trained, and more settings"
                ),
                type="tertiary",
            )
            st.button(
                say("{count} side by side", count=len(others)),
                key="hv-made-others",
                icon=":material/grid_view:",
                on_click=_look_closer,
                args=(unit, request),
                kwargs={"of": SEVERAL, "channels": ", ".join(map(str, others))},
                help=say("Pictures of channels as the grid begins, made together"),
                type="tertiary",
            )
            st.button(
                say("No picture"),
                key="hv-made-none",
                icon=":material/close:",
                on_click=update_link,
                kwargs={_PARAM: None},
                help=say("Make none for the channels that are picked up"),
                type="tertiary",
            )


def offer_own_picture(
    model: Model, activation: Activation, channel: int, order: Sequence[int]
) -> Callable[[], None] | None:
    """Show the channel's picture, or a button that has it made.

    Returns what is left to do once all else is drawn, for it takes seconds; None without any.

    Args:
        model: whose channel.
        activation: of its layer.
        channel: the one that is picked up.
        order: the channels in the order in which the grid shows them.
    """
    others = order[:_SIDE_BY_SIDE]
    request = _PictureRequest.of_link()
    if request is None:
        st.button(
            say("What does it look for?"),
            icon=":material/auto_awesome:",
            key="hv-make",
            type="tertiary",
            on_click=update_link,
            kwargs={_PARAM: str(_PictureRequest())},
            help=say("A picture that excites this channel, made by the network itself in seconds"),
        )
        return None
    st.markdown(say("**What it looks for**"))
    panel, address = _PicturePanel(), activation.address
    if address.call or address.path:
        panel.say(say("Pictures are made for the first call of a layer that puts out one tensor."))
        return None
    unit = _Unit(model, address.layer, channel)
    picture: _Picture | None = session_cache().get((*unit.key(request.seed), "pixels"))
    if picture is not None:
        panel.show(picture, channel)
        if picture.steps == request.steps:
            panel.offer_more(unit, request, others)
            return None
    return partial(_grow, unit, request, panel, others)


def _grow(
    unit: _Unit, request: _PictureRequest, panel: _PicturePanel, others: Sequence[int]
) -> None:
    """Make the picture, seen as it grows; a click anywhere ends the run and loses nothing."""
    cache = session_cache()  # not asked of Streamlit where the run is being ended
    due = 0.0
    method = SynthesisMethod(seed=request.seed)
    try:
        with turn(say("The channel's picture"), "own-picture", model=unit.model.name) as held:
            optimization = begin(
                unit.model, [Objective.of_channel(unit.layer, unit.channel)], method
            )
            report = held.yielding()
            panel.offer_stop(unit, request.seed)

            key = unit.key(request.seed)

            def keep(value: float) -> _Picture:
                picture = _Picture(optimization.pictures()[0], optimization.steps, value)
                cache.put((*key, "pixels"), picture, picture.pixels.nbytes)
                return picture

            def after(optimization: Optimization) -> None:
                nonlocal due
                if time.monotonic() >= due:  # kept first: what is drawn can end the run
                    panel.show(keep(optimization.values[0]), unit.channel)
                    due = time.monotonic() + _EVERY
                report(optimization.steps / request.steps)

            run_resumed(optimization, request.steps, cache, (*key, "state"), after)
            picture = keep(optimization.measured()[0])
    except HookVizError as error:
        panel.say(str(error))
        return
    panel.show(picture, unit.channel)
    panel.offer_more(unit, request, others)


def _stop(unit: _Unit, seed: int) -> None:
    """Have the link ask for as many steps as are made."""
    picture: _Picture | None = session_cache().get((*unit.key(seed), "pixels"))
    update_link(**{_PARAM: None if picture is None else str(_PictureRequest(picture.steps, seed))})


def _look_closer(unit: _Unit, request: _PictureRequest, **settings: str) -> None:
    """Go to the lens, with the same steps and seed and some other settings."""
    chosen = {"steps": request.steps, "seed": request.seed, **settings}
    choose(layer=unit.layer)
    update_link(
        lens=LENS,
        layer=unit.layer,
        channel=str(unit.channel),
        **{f"{LENS}-{name}": str(value) for name, value in chosen.items()},
    )
