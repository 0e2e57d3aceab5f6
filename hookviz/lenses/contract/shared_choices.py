"""Declare the choices that several lenses share: target, cell, attending layer, steps and seed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from hookviz.errors import SettingError, UnknownLayerError
from hookviz.explaining.attention.weights import attending_layers, no_attention_error
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.parameters import (
    ChannelChoice,
    ClassChoice,
    LayerChoice,
    Parameter,
    WholeNumber,
)
from hookviz.synthesis.optimizing import Optimization
from hookviz.types import ActivationKey


def cell_choice(
    matters_for: tuple[str, tuple[str, ...]], *, whose: bool = True, rare: bool = False
) -> tuple[WholeNumber, WholeNumber]:
    """Return the parameters for a row and a column, of which `chosen_cell` makes a cell.

    They are called "its row" and "its column", after a channel (`whose`), or "row" and "column".
    """
    texts = (
        (
            "row",
            mark("Its row") if whose else mark("Row"),
            mark("With a column: one cell of the channel, in place of its mean."),
        ),
        (
            "column",
            mark("Its column") if whose else mark("Column"),
            mark("With a row: one cell of the channel, in place of its mean."),
        ),
    )
    row, column = (
        WholeNumber(
            name=name,
            label=label,
            matters_for=matters_for,
            low=-1,
            high=100_000,
            default=-1,
            unset=mark("all"),
            help=text,
            rare=rare,
        )
        for name, label, text in texts
    )
    return row, column


TARGET_CLASS = ClassChoice(
    optional=True,
    help=mark("Whose score it is about; the likeliest class where nothing is chosen."),
)

TARGET_CHANNEL = ChannelChoice(
    label=mark("Its channel"),
    matters_for=("layer", ()),
    help=mark("Of the layer asked about."),
)

TARGET_CHOICES: tuple[Parameter, ...] = (
    TARGET_CLASS,
    LayerChoice(
        label=mark("Ask about layer"),
        kind="any",
        of_calls=True,
        default="none",
        help=mark("Ask about a channel of this layer, in place of the class."),
    ),
    TARGET_CHANNEL,
    *cell_choice(("layer", ())),
)
"""The parameters by which it is chosen."""


def cell_settings(cell: object, layer: object) -> dict[str, int]:
    """Return a cell's row and column as settings; none of no cell.

    Raises:
        SettingError: it is no pair of whole numbers from 0, or there is no layer that has it.
    """
    if cell is None:
        return {}
    if layer is None:
        raise SettingError(say("cell={cell!r} is of a layer: give layer= too.", cell=cell))
    try:
        row, column = (range(1_000_000).index(at) for at in cast(Any, cell))
    except (TypeError, ValueError):
        raise SettingError(
            say("cell={cell!r} is no row and column, such as (2, 3).", cell=cell)
        ) from None
    return {"row": row, "column": column}


def target_of(subject: Subject, chosen: Mapping[str, Any]) -> AttributionTarget:
    """Return the quantity that values of `TARGET_CHOICES` stand for, by their names.

    Raises:
        SettingError: of row and column one is left out.
        ModelError: no layer is chosen and the network puts out no class scores.
    """
    if chosen["layer"] is None:
        if chosen["target"] is None:
            subject.scored  # noqa: B018 - says that there are no scores
        return AttributionTarget(chosen["target"])
    cell = chosen_cell(chosen.get("row", -1), chosen.get("column", -1))
    return AttributionTarget(None, chosen["layer"], chosen["channel"], cell)


def chosen_cell(row: int, column: int) -> tuple[int, int] | None:
    """Return the cell of a row and a column, where −1 stands for none.

    Raises:
        SettingError: one of the two is left out.
    """
    if (row < 0) != (column < 0):
        raise SettingError(
            say(
                "row={row} and column={column}: choose both for one cell, or neither.",
                row=row,
                column=column,
            )
        )
    return None if row < 0 else (row, column)


def call_notes(subject: Subject, *layers: str | None) -> list[str]:
    """Return a sentence for each of the layers that run more than once in a pass."""
    notes = []
    for layer in dict.fromkeys(filter(None, layers)):
        asked = subject.trace.address(layer)
        calls = subject.trace.calls[asked.layer]
        if calls > 1:
            other = ActivationKey(asked.layer, (asked.call + 1) % calls)
            notes.append(
                say(
                    "{name} runs {calls} times in a pass; this is about call {number}. The layer "
                    "{other} stands for call {other_number}.",
                    name=asked.layer,
                    calls=calls,
                    number=asked.call + 1,
                    other=str(other),
                    other_number=other.call + 1,
                )
            )
    return notes


@dataclass(frozen=True, kw_only=True, slots=True)
class AttendingLayer(Parameter):
    """Choice of a layer that computes attention, by its name; the last one by default."""

    name: str = "layer"
    label: str = mark("Layer")

    def choices(self, subject: Subject) -> tuple[str, ...]:
        """Return the layers that attend, in order of execution; none where nothing does.

        Raises:
            ModelError: the network can't take the input.
        """
        return attending_layers(subject.model, tuple(subject.shape))

    def resolve(self, value: Any, subject: Subject) -> str:
        """Return the layer's name.

        Raises:
            ModelError: nothing in the network attends; it says which networks do.
            UnknownLayerError: no layer of that name attends.
        """
        names = self.choices(subject)
        if not names:
            raise no_attention_error(subject.model)
        if value is None:
            return names[-1]
        if value not in names:
            kind = say("layer that attends")
            model = subject.model.title
            raise UnknownLayerError(
                say("{kind} in {model}", kind=kind, model=model), str(value), names
            )
        return str(value)


_LAST_SEED = 2**31 - 100  # several pictures have seeds that follow each other
_EVERY = 0.12  # seconds between two pictures, which take time to make


def steps_choice(
    default: int,
    high: int = 2048,
    text: str = mark("Passes there and back. More of them go on from those that are done."),
) -> WholeNumber:
    """Return the parameter for how many steps an optimization takes."""
    return WholeNumber(
        name="steps", label=say("Steps"), low=1, high=high, default=default, help=text
    )


def seed_choice(text: str) -> WholeNumber:
    """Return the parameter for the seed of an optimization; `text` says of what."""
    return WholeNumber(
        name="seed", label=say("Seed"), low=0, high=_LAST_SEED, default=0, help=text, rare=True
    )


def step_callback(
    subject: Subject,
    steps: int,
    show: Callable[[Optimization], object],
    reporter: ProgressReporter | None = None,
) -> Callable[[Optimization], None]:
    """Return the callback of an optimization of `steps` steps, which reports progress.

    It calls `show` at the first step and some times a second. `reporter` is given where the
    optimization is one part of several.
    """
    whole = ProgressReporter(subject.progress)
    due = 0.0

    def after(now: Optimization) -> None:
        nonlocal due
        if now.steps < steps and time.monotonic() >= due:
            show(now)
            due = time.monotonic() + _EVERY
        if reporter is None:
            whole.share(now.steps / steps)
        else:
            reporter.within(now.steps / steps)

    return after
