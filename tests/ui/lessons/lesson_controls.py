"""What can be moved in each live part of a lesson, and which of the part's options that changes.

The options stand here once more, so that a part which forgets to tell its text of a control, or
tells it another one, is found.
"""

import ast
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookviz.lessons.part import Options

Change = Callable[[str, Options], Mapping[str, str]]


def same(option: str) -> Change:
    return lambda kept, _options: {option: kept}


def _constant(name: str) -> Change:
    def change(kept: str, options: Options) -> Mapping[str, str]:
        chosen = json.loads(options.get("choices", "{}"))
        return {"choices": json.dumps({**chosen, name: _read(kept)})}

    return change


def _read(kept: str) -> Any:
    try:
        return ast.literal_eval(kept)
    except (ValueError, SyntaxError):
        return kept


TOLD: Mapping[str, Mapping[str, Change]] = {
    "attention": {"place": same("layer"), "cell": same("cell")},
    "blind-test": {"answers": same("answers"), "round": same("round")},
    "channels": {"hunt": lambda kept, _: {"hunted": kept.split(" ")[-1]}},
    "depth": {"layer": same("at"), "channel": same("channel")},
    "gradient-flow": {name: same(name) for name in ("class", "at", "clamp", "limit")},
    "kernel": {"kernel": lambda kept, _: {"side": str(len(json.loads(kept)[0]) or 3)}},
    "name-channel": {"guesses": same("guesses")},
    "own-pooling": {"pooling": same("picked")},
    "pixels": {"pixel": same("at")},
    "relu-pool": {name: same(name) for name in ("cell", "pool", "window")},
    "relu-switch": {"relu": same("relu")},
    "riddle": {"riddle": lambda kept, _: {"uncovered": kept.split()[1]}},
    "scales": {"channel": same("picked")},
    "sgd-step": {"class": same("class"), "rate": same("rate")},
    "training": {"rate": same("rate"), "seed": same("seed"), "at": same("at")},
    "untrained": {"tried": same("tried")},
    "vote": {"class": same("picked"), "scores": same("dragged"), "channel": same("channel")},
    "what-if": {
        **{name: same(name) for name in ("amount", "target", "steps")},
        "count": same("amount"),
    },
}
"""Of each part the controls that its text tells of, and what each makes of the options."""

KERNEL = '[[[0.0,1.0,0.0],[1.0,-3.5,1.0],[0.0,1.0,2.0]],2,1,""]'
IN_LINK: Mapping[tuple[str, str], Sequence[str]] = {
    ("attention", "cell"): ("0,1", "3,2"),
    ("attention", "channel"): ("1",),
    ("channels", "channel"): ("3",),
    ("channels", "cell"): ("2,3",),
    ("channels", "hunt"): ("{digest} {layer} 3.1", "{digest} {layer} 3!"),
    ("dead-channels", "channel"): ("3",),
    ("depth", "layer"): ("{last}", "{first}"),
    ("depth", "channel"): ("{channel}",),
    ("depth", "cell"): ("1,2",),
    ("kernel", "kernel"): (KERNEL,),
    ("kernel", "cell"): ("2,3",),
    ("kernel", "was"): ("1 1 2",),
    ("own-pooling", "cell"): ("1,1",),
    ("pixels", "pixel"): ("5,7", "99,3"),
    ("pixels", "shade"): ("2",),
    ("relu-pool", "cell"): ("3,4", "9,1"),
    ("riddle", "riddle"): ("{sample} 2 2", "{sample} 4 1 {sample}"),
    ("scales", "channel"): ("3", "7"),
    ("training", "kernel"): ("2",),
    ("untrained", "channel"): ("3",),
    ("vote", "channel"): ("5", "9"),
    ("vote", "cell"): ("1,1",),
    ("vote", "scores"): ("0:9.50", "1:-3.25,2:7.00"),
    ("what-if", "channel"): ("3",),
    ("what-if", "flipped"): ("1,4",),
}
"""What a click, a key or a drag in a part's own drawing leaves in the link."""


def changed(part: str, name: str, kept: str, options: Options) -> Options:
    """The options of a part when a control stands at what the link has of it."""
    if part == "hook-code":
        return {**options, **_constant(name)(kept, options)}
    if (part, name) == ("vote", "scores") and options["shown"] != "softmax":
        return options  # no score can be dragged there
    told = TOLD.get(part, {}).get(name)
    return {**options, **(told(kept, options) if told else {})}
