"""Show the same picture with random weights beside it, since a pretty picture proves nothing.

A map that looks much the same for an untrained network shows the image and the architecture, and
nothing that was learned (Adebayo et al., "Sanity Checks for Saliency Maps", 2018).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.comparing.captures import rank_correlation
from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.errors import HookVizError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import localised, mark, say
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import Switch
from hookviz.models.derived_models import untrained

_SIMILAR, _DIFFERENT = 0.5, 0.2  # correlation from which maps are, and below which
_MAP = "map"  # name of a lens's map among its values
_BESIDE = mark(
    "Beside it is the same for a network that was never trained: what the two "
    "have in common comes from the architecture and the method, and was not "
    "learned."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class BesideRandom(Switch):
    """Switch for looking at the untrained network too; a lens's ``run`` knows nothing of it."""

    name: str = "beside_random"
    label: str = mark("Random weights beside it")
    help: str = mark("The same with weights that were never trained: what stays was not learned.")


def run_beside_random(lens: Lens, subject: Subject, chosen: Mapping[str, Any]) -> LensOutput:
    """Run a lens and, where chosen, put the untrained network's picture beside its first."""
    switches = {each.name for each in lens.parameters if isinstance(each, BesideRandom)}
    own = {name: value for name, value in chosen.items() if name not in switches}
    if not any(chosen[name] for name in switches):
        return lens.run(subject, **own)
    reporter = ProgressReporter(subject.progress, 2)
    panels, values = lens.run(replace(subject, progress=reporter.within), **own)
    reporter.step()

    def beside(output: LensOutput) -> None:
        subject.partial(
            (_pair_panels(panels, output[0], say(_BESIDE), pairs=len(output[0])), values)
        )

    try:
        blank = replace(
            subject,
            model=untrained(subject.model),
            cache=None,
            progress=reporter.within,
            partial=beside,
        )
        others, theirs = lens.run(blank, **own)
    except HookVizError as error:
        if reporter.was_ended_by(error):
            raise
        return (
            *panels,
            TextPanel(say("There is no picture with random weights: {error}", error=error), "note"),
        ), values
    reporter.step()
    if _MAP not in values:
        random = {f"random_{name}": numbers for name, numbers in theirs.items()}
        return _pair_panels(panels, others, say(_BESIDE), pairs=len(others)), {**values, **random}
    correlations = _correlations(values[_MAP], theirs[_MAP])
    values = {**values, "random_map": theirs[_MAP], **correlations}
    return _pair_panels(panels, others, _summarize(correlations)), values


def _correlations(
    ours: NDArray[np.floating[Any]], theirs: NDArray[np.floating[Any]]
) -> dict[str, NDArray[np.float64]]:
    """Return how alike both maps are; where they have signs, by the sizes alone as well."""
    correlations = {"rank_correlation": np.array(rank_correlation(ours, theirs))}
    if (ours < 0).any() or (theirs < 0).any():
        sizes = rank_correlation(np.abs(ours), np.abs(theirs))
        correlations["rank_correlation_of_sizes"] = np.array(sizes)
    return correlations


def _pair_panels(
    panels: tuple[Panel, ...], others: tuple[Panel, ...], words: str, *, pairs: int = 1
) -> tuple[Panel, ...]:
    """Put the other's first `pairs` pictures each behind its own, and words after them."""
    blanks = [panel for panel in others if isinstance(panel, ImagePanel)][:pairs]
    shown: list[Panel] = []
    last = len(panels)
    for panel in panels:
        shown.append(panel)
        if isinstance(panel, ImagePanel):
            if blanks:
                blank = blanks.pop(0)
                alt = say("{alt}, with random weights", alt=blank.alt)
                shown.append(replace(blank, title=say("With random weights"), alt=alt))
            last = len(shown)  # pictures that follow each other stand in a row
    return *shown[:last], TextPanel(words, "note"), *shown[last:]


def _summarize(correlations: Mapping[str, NDArray[np.float64]]) -> str:
    correlation = float(correlations["rank_correlation"])
    if not np.isfinite(correlation):
        return say(
            "With random weights beside it: one of the maps has one value everywhere, so "
            "the two can't be ranked alike or otherwise."
        )
    by_size = correlations.get("rank_correlation_of_sizes")
    written = localised(f"{correlation:.2f}").replace("-", "−")
    finding = say(
        "The maps of the trained and of an untrained network correlate by {correlation} (Spearman)",
        correlation=written,
    )
    strongest = correlation
    if by_size is not None and np.isfinite(by_size):
        finding += say(", their sizes by {correlation:.2f}", correlation=float(by_size)).replace(
            "-", "−"
        )
        # the signs may well be the other way round
        strongest = max(abs(correlation), float(by_size))
    if strongest >= _SIMILAR:
        means = say(
            "Much of it was there before any training: it shows the image more than what the "
        )
        means += say("network learned.")
    elif strongest >= _DIFFERENT:
        means = say("Part of it was there before any training.")
    else:
        means = say(
            "Little of it was there before any training, so it depends on what was learned."
        )
    return say(
        "{finding}. {explanation} That it depends on it does not make it right.",
        finding=finding,
        explanation=means,
    )


BESIDE_RANDOM = BesideRandom()
"""To stand among the parameters of a lens that shows pictures."""
