"""Word the errors for files of weights that can't be read, with what works instead."""

import re

from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import mark, say

_WORKS = mark("HookViz reads .safetensors files, and state dicts saved by torch.save (.pt, .pth)")


def unreadable(name: str, why: str) -> WeightsError:
    """Return the error for a file that is no checkpoint; `why` follows a colon."""
    return WeightsError(
        say(
            "{name} can't be read as a checkpoint: {reason}. {works}.",
            name=name,
            reason=why,
            works=say(_WORKS),
        )
    )


def damaged(name: str, error: Exception) -> WeightsError:
    """Return the error for a file that a library fails on, with the first line of its message."""
    reason = shorten(str(error).strip().partition("\n")[0], 120) or type(error).__name__
    return unreadable(name, say("it is cut short or damaged ({reason})", reason=reason))


def unsafe_file_error(name: str, reason: str) -> WeightsError:
    """Return the error for a file that torch refuses to unpickle, with the class that it wants."""
    match = re.search(r"GLOBAL (\S+)|<class '([\w.]+)'>", reason)
    wanted = shorten(match[1] or match[2]) if match else ""
    if wanted:
        what = say(
            "{name} is refused: it holds more than tensors. Reading it would run "
            "{function} from inside the file, and HookViz never runs code from a "
            "checkpoint. {hint}",
            name=name,
            function=wanted,
            hint=_guess(wanted),
        )
    elif "Unsupported operand" in reason:
        what = say(
            "{name} is refused: its pickle is of another protocol than torch.save's own "
            "(2) or holds more than tensors, and HookViz never runs code from a "
            "checkpoint.",
            name=name,
        )
    else:
        detail = reason.rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0]
        what = say(
            "{name} is refused: it is damaged or holds more than tensors ({detail}).",
            name=name,
            detail=shorten(detail, 120),
        )
    return WeightsError(
        say(
            "{problem} Where you trust the file, open it in your own Python and save the "
            'weights alone: torch.save(model.state_dict(), "weights.pth"), or '
            "safetensors.torch.save_file.",
            problem=what,
        )
    )


def _guess(wanted: str) -> str:
    """Say what an object of that class usually does in a checkpoint."""
    package = wanted.partition(".")[0]
    if package in ("numpy", "_codecs"):
        return say("That is a NumPy value, such as a metric kept beside the weights.")
    if package in ("argparse", "pathlib", "omegaconf", "yacs", "types", "datetime"):
        return say("That belongs to the training options kept beside the weights.")
    if package in ("getattr", "eval", "exec", "builtins", "os", "posix", "nt", "sys", "subprocess"):
        return say("No network needs that, so take care: the file may be meant to do harm.")
    return say("The file is likely a whole model, as torch.save(model) writes it.")
