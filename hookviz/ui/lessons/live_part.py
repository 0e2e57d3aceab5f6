"""Compute the facts of a lesson's live parts on the chosen model and image, and draw a part.

A part is drawn by itself, with the button to what it shows in the explorer.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lessons.lesson import Live, Step
from hookviz.lessons.part import DottedFacts, Fact, LessonScene, Options
from hookviz.ui.lessons.catalog import part_module
from hookviz.ui.lessons.choosing import open_in_explorer
from hookviz.ui.lessons.picks import remembered_link, remembered_options
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import ImageChoice, ModelChoice, plain
from hookviz.ui.theme import sign_words

_FACTS_BYTES = 2000  # about what the facts of a part take


@dataclass(frozen=True, eq=False, slots=True)
class SceneChoices:
    """The chosen image and model. It holds no model, so that what waits on the page holds none."""

    image_choice: ImageChoice
    choice: ModelChoice
    size: int | None
    whole: bool

    @contextmanager
    def scene(self) -> Iterator[LessonScene]:
        """Yield the scene for the parts, whose model is in use for the time of the block."""
        with resources.use_model(self.choice) as model:
            image = self.image_choice.image
            model_input = resources.prepare(model, image, size=self.size, whole=self.whole)
            cache = resources.session_cache()
            yield LessonScene(model, model_input, image, cache, size=self.size, whole=self.whole)


def facts_of(
    step: Step,
    scene: LessonScene,
    shown: Mapping[int, Options] = MappingProxyType({}),
    line: DeltaGenerator | None = None,
) -> Mapping[str, Fact]:
    """Return the facts of a step's live parts; dots for those that can't be computed.

    With them are the names of the colours that its maps have ``above`` and ``below`` zero.

    Args:
        step: the step.
        scene: what its parts look at.
        shown: by the position of a part among the blocks, the options that its controls have
            changed. Without them the facts are those of the lesson as its file has it.
        line: the empty element that a wait is written to, as `turn` says.
    """
    facts: dict[str, Fact] = {**sign_words()}
    for position, block in enumerate(step.blocks):
        if isinstance(block, Live):
            try:
                facts |= _facts(block, scene, {**block.options, **shown.get(position, {})}, line)
            except HookVizError:
                facts = DottedFacts(facts)  # the part says it where it stands
    return facts


def _facts(
    live: Live, scene: LessonScene, shown: Options, line: DeltaGenerator | None
) -> Mapping[str, Fact]:
    """Return the facts of a part, from the session's cache where they are there."""
    cache = resources.session_cache()
    options = tuple(sorted(shown.items()))
    key = (
        "facts",
        current(),
        live.part.name,
        options,
        scene.model.digest,
        scene.model_input.digest,
    )
    facts: Mapping[str, Fact] | None = cache.get(key)
    if facts is None:
        with turn(say("The lesson's numbers"), "lesson", model=scene.model.name, line=line):
            facts = live.part.facts(scene, shown)
        cache.put(key, facts, _FACTS_BYTES)
    return facts


def show_live(choices: SceneChoices, live: Live, key: str, told: Options) -> None:
    """Draw a live part; where it can't show this model or image, say so, and the lesson goes on.

    Whatever is done in it, the rest of the page stands as it is, unless the step's text tells of
    what was changed: `told` are the changed options that it was written with.
    """
    with st.container(key=f"hv-live-{key}"):
        _alone(choices, live, key, told)
        try:
            with choices.scene() as scene:
                link = live.part.link(scene, live.options)
        except HookVizError:
            return  # the part has said it
        if link:
            st.button(
                say("Open in the explorer"),
                icon=":material/open_in_new:",
                key=f"open {key}",
                type="tertiary",
                on_click=partial(_open, link, key),
            )


def _open(link: Mapping[str, str], key: str) -> None:
    """Open the explorer at the link of the lesson's part, with what was picked in it since."""
    open_in_explorer({**link, **remembered_link(key)})


@st.fragment
def _alone(choices: SceneChoices, live: Live, key: str, told: Options) -> None:
    show = part_module(live.part.name).show
    try:
        with choices.scene() as scene:
            show(scene, live.options, key)
    except HookVizError as error:
        st.warning(plain(str(error)), icon=":material/info:")
    if remembered_options(key) != told:
        st.rerun()
