"""Show the highest class scores as sliders, and the probabilities that the softmax makes of them.

The browser computes the softmax while one drags, over all classes; the server is told at the end.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from hookviz.language.saying import say
from hookviz.lessons.scores import Scores
from hookviz.ui.components.files import show

_STEPS = 200  # of a slider from end to end, about
_LEAST_ROOM = 4.0  # that a slider has beyond the highest and the lowest score


def show_class_scores(
    scores: Scores,
    count: int,
    moved: Mapping[int, float],
    on_move: Callable[[Mapping[int, float]], None],
    *,
    key: str,
) -> None:
    """Show the highest scores to be dragged.

    Args:
        scores: the network's own.
        count: how many classes have a slider.
        moved: scores that were dragged, by the class.
        on_move: gets all of them that differ from the network's own, when one was let go.
        key: of the component in Streamlit's state.
    """
    first = scores.first(count)
    own = [float(scores.scores[target]) for target in first]
    low, high, step = slider_ends(own)
    others = np.delete(scores.scores, first)

    def take(sent: object) -> None:
        match sent:
            case [*values] if len(values) == len(first):
                numbers = [float(each) for each in values if isinstance(each, int | float)]
                if len(numbers) == len(first):
                    pairs = zip(first, numbers, own, strict=True)
                    on_move({at: new for at, new, old in pairs if new != old})

    data = {
        "names": [scores.name(target) for target in first],
        "own": own,
        "scores": [moved.get(target, score) for target, score in zip(first, own, strict=True)],
        "others": None if not len(others) else float(np.logaddexp.reduce(others)),
        "more": len(others),
        "ends": [low, high, step],
        "words": {
            "label": say("The scores of the likeliest classes, and their probabilities"),
            "score": say("Score of {name}"),
            "heads": [say("class"), say("score"), say("probability")],
            "all": say("All scores together"),
            "others": say("all {count} others", count=f"{len(others):,}"),
            "reset": say("As the network has it"),
            "share": say("{share} %"),
            "less": say("< {share} %"),
            "more": say("> {share} %"),
        },
    }
    show("class_scores", key, data, moved=take)


def slider_ends(scores: list[float]) -> tuple[float, float, float]:
    """Return the lowest and the highest value of the sliders, and their step.

    There is room to bring the last of the classes to the front, and the first to the end.
    """
    lowest, highest = min(scores), max(scores)
    room = max(_LEAST_ROOM, highest - lowest)
    step = max(0.05, round((highest - lowest + 2 * room) / _STEPS, 2))
    low, high = math.floor(lowest - room), math.ceil(highest + room)
    return float(low), float(high), step
