"""Compute the facts of a lesson's live parts on the chosen model and image, and draw a part."""

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
from hookviz.lessons.lesson import Lesson, Live, Step
from hookviz.lessons.part import DottedFacts, Fact, LessonScene, Options, Part
from hookviz.models import catalog
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
    """The chosen image and model; it holds no network, since Streamlit keeps it.

    Attributes:
        image_choice: the image.
        choice: the model.
        size: the side of the input; None for the model's own.
        whole: whether the input is the whole image.
        is_lessons_own: whether the model is the lesson's, in place of the chosen one.
    """

    image_choice: ImageChoice
    choice: ModelChoice
    size: int | None
    whole: bool
    is_lessons_own: bool = False

    @contextmanager
    def scene(self) -> Iterator[LessonScene]:
        """Yield the parts' scene, whose model stays in memory during the block."""
        with resources.use_model(self.choice) as model:
            image = self.image_choice.image
            model_input = resources.prepare(model, image, size=self.size, whole=self.whole)
            cache = resources.session_cache()
            yield LessonScene(model, model_input, image, cache, size=self.size, whole=self.whole)


def fits(lesson: Lesson, scene: LessonScene) -> bool:
    """Return whether what the lesson says of its live parts holds for the scene's network."""
    parts = {
        block.part.name: block.part
        for step in lesson.steps
        for block in step.blocks
        if isinstance(block, Live)
    }

    def part_fits(part: Part) -> bool:
        try:
            return part.fits(scene)
        except HookVizError:
            return False

    return all(
        scene.cached(("fits", name), partial(part_fits, part), 8) for name, part in parts.items()
    )


def lessons_own(lesson: Lesson, choices: SceneChoices) -> SceneChoices | None:
    """Return the choices with the lesson's own model; None without one in the box."""
    title = lesson.defaults.get("model")
    specs = [spec for spec in catalog.described_models() if spec.title == title and spec.on_disk]
    if not specs or specs[0] == choices.choice.spec:
        return None
    return SceneChoices(
        choices.image_choice,
        ModelChoice(specs[0], "pretrained"),
        size=None,
        whole=False,
        is_lessons_own=True,
    )


def facts_of(
    step: Step,
    scene: LessonScene,
    changed: Mapping[int, Options] = MappingProxyType({}),
    line: DeltaGenerator | None = None,
) -> Mapping[str, Fact]:
    """Return the facts of a step's live parts; dots for those that can't be computed.

    ``above`` and ``below`` are the names of the colours of maps above and below zero.

    Args:
        step: the step.
        scene: model and image.
        changed: options that a part's controls have changed, by the part's position among the
            blocks; without them the facts are those of the lesson's file.
        line: the empty element for the text of a wait.
    """
    facts: dict[str, Fact] = {**sign_words()}
    for position, block in enumerate(step.blocks):
        if isinstance(block, Live):
            try:
                facts |= _facts(block, scene, {**block.options, **changed.get(position, {})}, line)
            except HookVizError:
                facts = DottedFacts(facts)  # the part shows the error
    return facts


def _facts(
    live: Live, scene: LessonScene, options: Options, line: DeltaGenerator | None
) -> Mapping[str, Fact]:
    """Return the facts of a part, from the session's cache if it has them."""
    cache = resources.session_cache()
    digests = scene.model.digest, scene.model_input.digest
    key = ("facts", current(), live.part.name, tuple(sorted(options.items())), *digests)
    facts: Mapping[str, Fact] | None = cache.get(key)
    if facts is None:
        with turn(say("The lesson's numbers"), "lesson", model=scene.model.name, line=line):
            facts = live.part.facts(scene, options)
        cache.put(key, facts, _FACTS_BYTES)
    return facts


def show_live(choices: SceneChoices, live: Live, key: str, in_text: Options) -> None:
    """Draw a live part with a button to the explorer, or the error if it can't be drawn.

    Its controls run the part alone, unless the step's text was written with other changed options
    than the present ones: `in_text`.
    """
    with st.container(key=f"hv-live-{key}"):
        _show_part(choices, live, key, in_text)
        try:
            with choices.scene() as scene:
                link = live.part.link(scene, live.options)
        except HookVizError:
            return  # the part shows the error
        if link:
            st.button(
                say("Open in the explorer"),
                icon=":material/open_in_new:",
                key=f"open {key}",
                type="tertiary",
                on_click=partial(_open, {**link, **_model_link(choices)}, key),
            )


def _model_link(choices: SceneChoices) -> Mapping[str, str]:
    return {"model": choices.choice.spec.title} if choices.is_lessons_own else {}


def _open(link: Mapping[str, str], key: str) -> None:
    """Open the explorer at the link of a lesson's part, with the choices in the part."""
    open_in_explorer({**link, **remembered_link(key)})


@st.fragment
def _show_part(choices: SceneChoices, live: Live, key: str, in_text: Options) -> None:
    show = part_module(live.part.name).show
    try:
        with choices.scene() as scene:
            show(scene, live.options, key)
    except HookVizError as error:
        st.warning(plain(str(error)), icon=":material/info:")
    if remembered_options(key) != in_text:
        st.rerun()
