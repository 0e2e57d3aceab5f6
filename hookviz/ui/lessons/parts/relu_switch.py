"""Switch off every ReLU of the network, and compare the classes, of other pictures too."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from hookviz.explaining.scores.scoring import without_relu
from hookviz.language.saying import say, say_count
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import photograph
from hookviz.lessons.scores import Scores, chance, named_scores, own_scores
from hookviz.ui.lessons.figures import MIXED, show_before_and_after, show_verdicts, verdicts
from hookviz.ui.lessons.picks import choose_button, remember_options
from hookviz.ui.state import plain

ON, OFF = _STATES = ("on", "off")
"""Whether the network has its ReLUs."""


@dataclass(frozen=True, eq=False, slots=True)
class SwitchedOff:
    """The class scores without ReLU.

    Attributes:
        scores: of the scene's image.
        counts: number of switched-off ReLUs by their kind's name.
    """

    scores: Scores
    counts: Mapping[str, int]

    @property
    def count(self) -> int:
        """Number of switched-off ReLUs."""
        return sum(self.counts.values())

    @property
    def kinds(self) -> str:
        """Names of their kinds; ``"ReLU"`` without any."""
        return ", ".join(self.counts) or "ReLU"


def switched_off(scene: LessonScene) -> SwitchedOff:
    """Return the scene's class scores with every ReLU an identity.

    Raises:
        ModelError: the network puts out no class scores.
    """

    def compute() -> SwitchedOff:
        off = without_relu(scene.model, scene.model_input)
        scores = named_scores(scene.model, off.scores, own_scores(scene).reading)
        return SwitchedOff(scores, off.switched_off)

    return scene.cached(("switched off",), compute, 10_000)


def _outcome(scene: LessonScene, state: str) -> str:
    """Return a sentence on the network's answer in a state."""
    own, off = own_scores(scene), switched_off(scene)
    if not off.count:
        return say("In {model} no ReLU can be found to switch off.", model=scene.model.title)
    if state == ON:
        return say(
            "With {kind} the network says {label}, {chance}.",
            kind=off.kinds,
            label=own.name(own.best),
            chance=chance(float(own.chances[own.best])),
        )
    classes = Counter(each.scores.best for each in verdicts(scene, MIXED, relu=False))
    most, count = classes.most_common(1)[0]
    of_image = say(
        "Without them it says {label}, {chance}; {before} has {left}.",
        label=off.scores.name(off.scores.best),
        chance=chance(float(off.scores.chances[off.scores.best])),
        before=own.name(own.best),
        left=chance(float(off.scores.chances[own.best])),
    )
    of_others = say_count(
        "And in {count} of {pictures} pictures it sees the same: {label}.",
        "And in {count} of {pictures} pictures it sees the same: {label}.",
        count,
        pictures=classes.total(),
        label=own.name(most),
    )
    return say("{sentence} {another}", sentence=of_image, another=of_others)


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    own, off = own_scores(scene), switched_off(scene)
    return {
        "state": options["relu"],
        "relus": off.count,
        "kind": off.kinds,
        "label": own.name(own.best),
        "chance": chance(float(own.chances[own.best])),
        "outcome": _outcome(scene, options["relu"]),
    }


PART = Part(
    name="relu-switch",
    sentence="A switch for every ReLU of the network, the likeliest classes with them and without, "
    "and what it then sees in other pictures.",
    options=(Option("relu", ON, "Whether they are on at first: on or off.", choice(_STATES)),),
    facts=_facts,
)


_WIDTHS = (2, 5)  # of the image, and of the classes


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the switch; below it the image's classes, and those of other pictures."""
    off = switched_off(scene)
    if not off.count:
        st.info(plain(_outcome(scene, ON)), icon=":material/info:")
        show_verdicts(verdicts(scene, MIXED))
        return
    names = {
        ON: say("{kind} on", kind=off.kinds),
        OFF: say("All {count} switched off", count=off.count),
    }
    first = options["relu"]
    state = choose_button(off.kinds, names, key, "relu", first=first, label_visibility="collapsed")
    remember_options(key, {"relu": state}, options)
    own = own_scores(scene)
    now = own if state == ON else off.scores
    left, right = st.columns(_WIDTHS, gap="small", wrap=False)
    with left:
        st.image(photograph(scene), width="stretch", output_format="JPEG", alt=say("The image"))
    with right:
        show_before_and_after(own, now, titles=(say("With them"), say("Now")), written=chance)
    st.caption(say("What it says of these pictures now"))
    show_verdicts(verdicts(scene, MIXED, relu=state == ON))
