"""Hunt for bytes on which `hookviz.images.decoding` does anything but its duty, by coverage.

Its duty: an image or an `ImageError`, within bounded time and memory, and twice the same. Atheris
(libFuzzer for Python) makes the inputs, starting with a small file of every format:

    python -m scripts.fuzz --inputs 1000000 --minutes 60

Everything is kept in a folder (`--folder`): the corpus, the findings and the figures. A second call
goes on where the first ended, and one without anything left to do prints the figures again.
"""

import argparse
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hookviz.errors import ImageError
from hookviz.images import decoding, reading
from hookviz.settings import settings
from hookviz.types import InputImage
from scripts.fuzz_seeds import repaired, seeds

ROOT = Path(__file__).parent.parent
COUNTS = ("inputs", "images", "refusals", "findings", "milliseconds", "slowest_ms", "most_kb")
_HANGS_AFTER = 20  # seconds
_MOST_MEMORY_MB = 2048  # of the whole process

# Atheris counts the branches of what is imported under its eyes, so this comes before all else.
_CHILD = """
import sys, atheris
with atheris.instrument_imports(
    include=["hookviz.images.formats", "hookviz.images.decoding", "PIL"]
):
    import hookviz.images.decoding
from scripts import fuzz
fuzz.hunt(*sys.argv[1:])
"""


# ── what decode must do ────────────────────────────────────────────────────────────────────────


def judge(data: bytes) -> InputImage | None:
    """Read `data` and return its image, None where refused; raise what is wrong about either."""
    try:
        image = reading.decode(data, "fuzz.img")
    except ImageError as error:
        said = str(error)
        assert "'fuzz.img'" in said, f"the file is not named: {said}"
        assert len(said) < 400, f"{len(said)} characters of message"
        return None
    pixels = image.pixels
    height, width, channels = pixels.shape
    assert channels == 3, pixels.shape
    assert pixels.dtype == np.uint8, pixels.dtype
    assert 0 < height * width <= settings().max_pixels, f"{width} × {height} pixels"
    assert not pixels.flags.writeable, "the pixels can be written to"
    # Memory that nobody filled would show what others left in it, and differ from time to time.
    assert reading.decode(data, "fuzz.img").digest == image.digest, (
        "another picture the second time"
    )
    return image


class Watch:
    """Judge of inputs that counts them in a file that survives a crash, and keeps what is wrong."""

    def __init__(self, folder: Path, seconds: float, megabytes: int) -> None:
        self._counts = counters(folder)
        self._findings = folder / "findings"
        self._seconds, self._megabytes = seconds, megabytes
        self._seen: set[str] = set()

    def __call__(self, data: bytes) -> None:
        """Judge one input."""
        counts = self._counts
        counts[0] += 1
        _forget_peak()
        before, started = _peak_kb(), time.thread_time()
        try:
            counts[1 if judge(data) is not None else 2] += 1
        except Exception as error:  # noqa: BLE001  # the very thing that is looked for
            self._keep(data, f"{type(error).__name__}", traceback.format_exc())
        taken, grown = time.thread_time() - started, _peak_kb() - before
        counts[4] += round(taken * 1000)
        counts[5] = max(counts[5], round(taken * 1000))
        if counts[0] > 1000:  # until then it is the process itself that grows
            counts[6] = max(counts[6], grown)
        if taken > self._seconds:
            self._keep(data, "slow", f"{taken:.1f} seconds of processor time")
        if grown > self._megabytes * 1024:
            self._keep(data, "memory", f"{grown // 1024} MB more than before")

    def _keep(self, data: bytes, kind: str, said: str) -> None:
        place = re.findall(r'File "([^"]+)", line (\d+)', said)[-1:]
        if (mark := f"{kind}{place or data[:3]!r}") in self._seen:  # one of each sort is enough
            return
        self._seen.add(mark)
        self._counts[3] += 1
        target = self._findings / f"{kind}-{hashlib.sha256(data).hexdigest()[:12]}"
        target.write_bytes(data)
        target.with_suffix(".txt").write_text(said)


def _peak_kb() -> int:
    """Return the most memory of this process since `_forget_peak`; 0 elsewhere than on Linux.

    `getrusage` would not do: it begins at the peak of the process that started this one.
    """
    if sys.platform != "linux":
        return 0
    with open("/proc/self/status", "rb") as status:  # noqa: PTH123  # thousands a second
        return int(status.read().partition(b"VmHWM:")[2].split(maxsplit=1)[0])


def _forget_peak() -> None:
    """Reset the process's peak of memory."""
    if sys.platform == "linux":
        with open("/proc/self/clear_refs", "w") as switch:  # noqa: PTH123  # thousands a second
            switch.write("5")


def counters(folder: Path) -> NDArray[np.int64]:
    """Map the figures in a folder, ``(7,)``, in the order of `COUNTS`; writes go to the file."""
    path = folder / "counts"
    if not path.exists():
        path.write_bytes(bytes(8 * len(COUNTS)))
    return np.memmap(path, np.int64, "r+", shape=(len(COUNTS),))


def hunt(folder: str, seconds: str, megabytes: str, *options: str) -> NoReturn:
    """Let atheris try inputs until its options say stop; the process ends here."""
    atheris: Any = importlib.import_module("atheris")
    warnings.simplefilter("ignore")

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        changed: bytes = atheris.Mutate(data, most)
        return repaired(changed)[:most] if seed % 4 else changed

    watch = Watch(Path(folder), float(seconds), int(megabytes))
    atheris.Setup(["fuzz", *options], watch, custom_mutator=mutate)
    atheris.Fuzz()
    raise SystemExit  # atheris ends the process itself


# ── runs ───────────────────────────────────────────────────────────────────────────────────────


def run(folder: Path, arguments: argparse.Namespace) -> None:
    """Hunt until there were as many inputs as asked for, or the time is up; print as it goes on."""
    corpus, findings, first = folder / "corpus", folder / "findings", folder / "seeds"
    for place in (corpus, findings, first):
        place.mkdir(parents=True, exist_ok=True)
    for name, data in seeds().items():
        (first / name).write_bytes(data)
    counts, ends = counters(folder), time.monotonic() + arguments.minutes * 60
    while (left := arguments.inputs - int(counts[0])) > 0 and time.monotonic() < ends:
        before = int(counts[0])
        options = (
            *(f"-runs={left}", f"-max_total_time={max(1, round(ends - time.monotonic()))}"),
            *(f"-max_len={arguments.most_bytes}", f"-artifact_prefix={findings}/"),
            *(f"-timeout={_HANGS_AFTER}", f"-rss_limit_mb={_MOST_MEMORY_MB}"),
            *("-detect_leaks=0", str(corpus), str(first)),
        )
        limits = (str(folder), str(arguments.seconds), str(arguments.megabytes))
        ended = _child([*limits, *options], folder, arguments.most_pixels)
        if ended:  # a crash, a hang or too much memory; libFuzzer has kept the input
            counts[3] += 1
            print(f"The process ended with {ended}: see {findings} and {folder / 'log'}")
        if int(counts[0]) - before < len(seeds()):
            print("It gets no further: see", folder / "log")
            return


def _child(arguments: list[str], folder: Path, most_pixels: int) -> int:
    """Return the exit status of one process that hunts; print a line of progress every minute."""
    environment = {
        **os.environ,
        "HOOKVIZ_MAX_PIXELS": str(most_pixels),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    counts, started, before = counters(folder), time.monotonic(), int(counters(folder)[0])
    with (folder / "log").open("a") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, *arguments],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=ROOT,
        )
    try:
        while _still_runs(child, 60):
            rate = (int(counts[0]) - before) / (time.monotonic() - started)
            print(
                f"{int(counts[0]):,} inputs, {rate:,.0f} a second; {branches(folder)}", flush=True
            )
    finally:
        child.terminate()
        child.wait()
        with (folder / "seconds").open("a") as taken:
            taken.write(f"{time.monotonic() - started:.0f}\n")
    return child.returncode


def _still_runs(child: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def branches(folder: Path) -> str:
    """Return what libFuzzer last said about branches reached."""
    log = (folder / "log").read_text(errors="replace") if (folder / "log").exists() else ""
    said = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", log)
    return "{} branches, {} features, {} files in the corpus".format(*(said or [(0, 0, 0)])[-1])


def reached(files: Iterator[bytes]) -> dict[str, tuple[int, int, list[str]]]:
    """Return lines that `files` reach in decoding.py, all lines, and functions left out.

    Lines are counted in functions that are called at all; of the others there are the names.
    """
    functions = {str(decoding.__file__): dict(_functions(decoding))}
    seen: dict[str, set[int]] = {name: set() for name in functions}

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in seen:
            return None
        if event == "line":
            seen[frame.f_code.co_filename].add(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        for data in files:
            judge(data)
    finally:
        sys.settrace(None)
    found = {}
    for path, lines_of in functions.items():
        called = {name: lines for name, lines in lines_of.items() if lines & seen[path]}
        lines = set().union(*called.values())
        left = sorted(lines_of.keys() - called.keys())
        found[Path(path).name] = len(seen[path] & lines), len(lines), left
    return found


def _functions(module: ModuleType) -> Iterator[tuple[str, set[int]]]:
    """List every function of a module with its lines."""

    def inside(code: CodeType) -> Iterator[tuple[str, set[int]]]:
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                lines = {line for *_, line in inner.co_lines() if line}
                if inner.co_flags & inspect.CO_OPTIMIZED:  # a function, and no class
                    yield inner.co_qualname, lines - {inner.co_firstlineno}
                yield from inside(inner)

    path = str(module.__file__)
    for name, lines in inside(compile(Path(path).read_text("utf-8"), path, "exec")):
        if lines and "<" not in name.rpartition(".")[2]:  # a lambda counts with its function
            yield name, lines


def report(folder: Path) -> None:
    """Print the figures of all runs in a folder."""
    count = dict(zip(COUNTS, map(int, counters(folder)), strict=True))
    seconds = sum(map(int, (folder / "seconds").read_text().split()))
    print(f"inputs               {count['inputs']:,} ({count['inputs'] / (seconds or 1):,.0f}/s)")
    print(f"time                 {seconds / 60:,.1f} minutes")
    print(f"images, refusals     {count['images']:,} and {count['refusals']:,}")
    print(f"slowest input        {count['slowest_ms'] / 1000:.3f} s of processor time")
    print(f"most memory          {count['most_kb'] / 1024:.1f} MB more, by one input")
    print(f"coverage             {branches(folder)}")
    paths = [*(folder / "seeds").iterdir(), *(folder / "corpus").iterdir()]
    for name, (hit, every, left) in reached(path.read_bytes() for path in paths).items():
        print(
            f"  {name:<18} {hit} of {every} lines, {hit / every:.0%}; not called: {', '.join(left)}"
        )
    kept = sorted(path.name for path in (folder / "findings").iterdir() if path.suffix != ".txt")
    print(f"findings             {count['findings']}" + "".join(f"\n  {name}" for name in kept))


def main() -> int:
    """Run, report, and return 1 where there are findings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="stop after so many, in all")
    parser.add_argument("--minutes", type=float, default=60, help="stop after so long, this time")
    parser.add_argument("--most-pixels", type=int, default=4096, help="HOOKVIZ_MAX_PIXELS")
    parser.add_argument("--most-bytes", type=int, default=4096, help="the largest input")
    parser.add_argument("--seconds", type=float, default=2, help="of processor time for one input")
    parser.add_argument("--megabytes", type=int, default=128, help="that one input may add")
    arguments = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("The fuzzer needs atheris: python -m pip install atheris==3.0.0", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and the child ends with us
    warnings.simplefilter("ignore")
    folder = arguments.folder.resolve()
    run(folder, arguments)
    os.environ["HOOKVIZ_MAX_PIXELS"] = str(arguments.most_pixels)
    report(folder)
    return 1 if counters(folder)[3] else 0


if __name__ == "__main__":
    sys.exit(main())
