"""Send changed pictures, made-up pickles and labels through the wall, and find what is wrong.

    python -m scripts.fuzz_wall --minutes 20

What comes back is an image, a checkpoint's tensors, labels or an error of ours. A finding is
anything else: another exception, a reader that takes longer than it may, a server of processes that
ended, memory that stays here.

Files are small ones of every format with bits turned and chunks doubled, moved, stretched or cut,
safetensors changed so too, pickles of torch's own instructions in any order, and labels of what
such files are written with.
"""

import argparse
import random
import resource
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save

from hookviz.errors import HookVizError
from hookviz.images import reading
from hookviz.models.checkpoints.files import read_state_dict
from hookviz.models.labels import read_labels
from hookviz.reader import wall
from scripts.fuzz_seeds import repaired, seeds
from tests.hostile_checkpoints import HOSTILE, called, number, old_format, saved, text

_LONGEST = 60.0  # seconds of one file: the deadline of its reader, and some
_MOST_MB = 300  # that this process may grow by
_LONGEST_LABEL = 200  # letters
_SAFETENSORS = save({"weight": torch.ones(2, 3), "bias": torch.ones(2, dtype=torch.float16)})
_CALLS = (
    *("collections.OrderedDict", "torch.Size", "torch._utils._rebuild_tensor_v2"),
    *("torch._utils._rebuild_parameter", "torch.FloatStorage", "builtins.set", "os.system"),
)


def changed(data: bytes, choice: random.Random) -> bytes:
    """Return a file with bits turned, and parts doubled, moved, stretched or cut."""
    new = bytearray(data)
    for _ in range(choice.randrange(1, 5)):
        start = choice.randrange(len(new) + 1)
        end = min(len(new), start + choice.choice((1, 2, 4, 12, 40, 200)))
        match choice.randrange(6):
            case 0 if start < len(new):
                new[start] ^= 1 << choice.randrange(8)
            case 1:
                new[start:start] = new[start:end] * choice.choice((1, 2, 500))
            case 2:
                del new[start:end]
            case 3:
                new[start : start + 4] = struct.pack(
                    choice.choice("<>") + "I", choice.choice((0, 1, 2**16, 2**31 - 1, 2**32 - 1))
                )
            case 4:
                part = new[start:end]
                del new[start:end]
                at = choice.randrange(len(new) + 1)
                new[at:at] = part
            case _:
                new[start:end] = choice.randbytes(end - start)
    return bytes(new)


def pickled(choice: random.Random) -> bytes:
    """Return a checkpoint whose pickle is made of parts that torch's reader knows."""
    parts = (
        lambda: number(choice.choice((0, 1, 255, 2**31, 2**62, -1))),
        lambda: text(choice.choice(("", "weight", "storage", "x" * 300))),
        lambda: called(choice.choice(_CALLS), b")"),
        choice.choice(HOSTILE),
        lambda: choice.choice((b"}", b"]", b")", b"(", b"t", b"\x85", b"\x86", b"s", b"u", b"a")),
        lambda: choice.choice((b"e", b"Q", b"R", b"b", b"q\x01", b"h\x01", b"0", b"N", b"\x89")),
    )
    body = b"".join(choice.choice(parts)() for _ in range(choice.randrange(1, 30)))
    return choice.choice((saved, old_format))(body)


def labelled(choice: random.Random) -> bytes:
    """Return a file of labels in text or JSON, or of neither."""
    words = (
        *("cat", "barn owl", "喵", "n02123045 ", "id2label", "name", "\ud800", "\\ud800", "\0"),
        *("[", "]", "{", "}", '"', "'", ":", ",", "\n", "\r", "\t", " ", "\ufeff", "\u2028"),
        *("0", "1", "-1", "1e999", "1e15", "9" * 400, "true", "null", "NaN", '{"0": "cat"', '["'),
    )
    body = "".join(
        choice.choice(words) * choice.choice((1, 1, 1, 2, 100, 20_000))
        for _ in range(choice.randrange(1, 30))
    )
    return body.encode(choice.choice(("utf-8", "utf-16")), "surrogatepass")


def judge(data: bytes, name: str) -> str:
    """Read a picture, a checkpoint or labels through the wall; return what became of it.

    Raises:
        Exception: what should not have come back.
    """
    started, server = time.monotonic(), wall.server_number()
    try:
        if name.endswith(".img"):
            image = reading.decode(data, name)
            assert image.pixels.shape == (image.height, image.width, 3)
        elif name.endswith(".pth"):
            read_state_dict(data, name)
        else:
            assert all(len(label) <= _LONGEST_LABEL for label in read_labels(data, name))
    except HookVizError as error:
        outcome = "ended its reader" if "crash" in str(error) else "refused"
    else:
        outcome = "read"
    assert time.monotonic() - started < _LONGEST, "it took too long"
    assert wall.server_number() == server, "the server of processes ended"
    return outcome


def made_up(choice: random.Random, known: Sequence[bytes]) -> tuple[bytes, str]:
    """Return a file, and a name that says its kind."""
    draw = choice.random()
    if draw < 0.6:
        data = changed(choice.choice(known), choice)
        return (repaired(data) if choice.random() < 0.5 else data), "fuzz.img"
    if draw < 0.75:
        return labelled(choice), choice.choice(("fuzz.txt", "fuzz.json"))
    return (changed(_SAFETENSORS, choice) if draw < 0.8 else pickled(choice)), "fuzz.pth"


def hunt(seconds: float, seed: int, folder: Path) -> int:
    """Judge files for that long, and print how they fared; return how many were findings."""
    choice, known = random.Random(seed), [*seeds().values()]  # noqa: S311 - nobody's secret
    counts, until = Counter[str](), time.monotonic() + seconds
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while time.monotonic() < until:
        data, name = made_up(choice, known)
        try:
            counts[judge(data, name)] += 1
        except Exception:  # noqa: BLE001 - which is what is hunted for
            counts["finding"] += 1
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{seed}-{counts.total()}").write_bytes(data)
            traceback.print_exc()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    if grown > _MOST_MB:
        counts["finding"] += 1
    print(f"seed {seed}: {dict(counts)}, grown by {grown} MB")
    return counts["finding"]


def main() -> None:
    """Hunt as long as was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz-wall"))
    asked = parser.parse_args()
    wall.put_up()
    try:
        found = hunt(60 * asked.minutes, asked.seed, asked.folder)
    finally:
        wall.take_down()
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
