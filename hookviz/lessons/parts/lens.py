"""Run any lens on the lesson's image, with the settings that the lesson chose."""

from collections.abc import Mapping
from typing import Any

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.parameters import ClassChoice, LayerChoice
from hookviz.lenses.contract.running import check_names, find_lens
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice

KINDS = ("text", "image", "pictures", "grid", "maps", "chart", "table", "tree")
"""The panels that can be shown, by the first word of their class's name."""


def subject_of(scene: LessonScene) -> Subject:
    """Return the lesson's scene as lenses take it."""
    return Subject(scene.model, scene.model_input, scene.image, scene.cache)


def split_names(text: str) -> tuple[str, ...]:
    """Split a list of names with commas."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def lens_settings(scene: LessonScene, options: Options) -> dict[str, Any]:
    """Return the parameters of the lens that the lesson sets, by name, unchecked.

    Raises:
        SettingError: the lens has no parameter of such a name.
        UnknownLayerError: the network has no such layer.
    """
    lens = find_lens(options["lens"])
    chosen: dict[str, Any] = _settings(options["settings"])
    if options["layer"]:
        chosen["layer"] = options["layer"]
    check_names(lens, (*chosen, *split_names(options["controls"])))
    if "layer" in chosen:
        chosen["layer"] = layer_of(scene, chosen["layer"]).name
    return chosen


def resolve_all(scene: LessonScene, options: Options) -> dict[str, Any]:
    """Return every parameter of the lens as it will run, defaults filled in.

    Raises:
        HookVizError: a value means nothing to the lens, or not for this network.
    """
    chosen, subject = lens_settings(scene, options), subject_of(scene)
    return {
        parameter.name: parameter.resolve(chosen.get(parameter.name), subject)
        for parameter in find_lens(options["lens"]).parameters
    }


def _settings(text: str) -> dict[str, Any]:
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    lens, subject = find_lens(options["lens"]), subject_of(scene)
    chosen = resolve_all(scene, options)
    facts: dict[str, Fact] = {
        name: value for name, value in chosen.items() if isinstance(value, str | int | float)
    }
    for parameter in lens.parameters:
        if isinstance(parameter, ClassChoice) and chosen[parameter.name] is not None:
            facts[parameter.name] = subject.label(chosen[parameter.name])
    return {"lens": lens.title, "question": lens.question, **facts}


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    lens = find_lens(options["lens"])
    return link_of(lens, lens_settings(scene, options))


def link_of(lens: Lens, chosen: Mapping[str, Any]) -> dict[str, str]:
    """Return the page's link of a lens with such settings, as its widgets have them."""
    link = {"lens": lens.slug}
    for parameter in lens.parameters:
        if parameter.name not in chosen or chosen[parameter.name] is None:
            continue
        at_side = isinstance(parameter, LayerChoice) and parameter.name == "layer"
        own = at_side or parameter.name == "channel"
        link[parameter.name if own else f"{lens.slug}-{parameter.name}"] = str(
            chosen[parameter.name]
        )
    return link


def _check_lens(value: str) -> str:
    try:
        find_lens(value)
    except HookVizError as error:
        return str(error)
    return ""


def _check_settings(value: str) -> str:
    bad = [part.strip() for part in value.split(";") if part.strip() and "=" not in part]
    return (
        say("{part!r} is not a name and a value such as method=LayerCAM.", part=bad[0])
        if bad
        else ""
    )


def _check_controls(value: str) -> str:
    wrong = "layer" in split_names(value)
    return say("The layer is set by the lesson: it has an option of its own.") if wrong else ""


def _check_panels(value: str) -> str:
    return next(filter(None, map(choice(KINDS), split_names(value))), "")


PART = Part(
    name="lens",
    sentence="What a lens shows of the image, with those of its settings that the lesson leaves "
    "to choose.",
    options=(
        Option("lens", None, "The lens's name in links, such as grad-cam.", _check_lens),
        Option(
            "layer", "", "The layer, for a lens that takes one; without, the lens's own choice."
        ),
        Option(
            "settings",
            "",
            "Other settings of the lens, such as target=star; method=LayerCAM.",
            _check_settings,
        ),
        Option(
            "controls",
            "",
            "The settings that the learner can change, such as target, method.",
            _check_controls,
        ),
        Option(
            "panels",
            "",
            f"What of it is shown, of {', '.join(KINDS)}; without, all.",
            _check_panels,
        ),
    ),
    facts=_facts,
    link=_link,
)
