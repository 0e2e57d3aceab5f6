"""Stream ten thousand images to a disk, kill the run halfway, and let it go on.

    python -m scripts.long_stream
    python -m scripts.long_stream --images 1000 --to maps.zarr

It passes where the memory stays within 50 MB from the first tenth on, in the run that is killed and
in the one that goes on, and their files are those of a run that nobody stopped, byte by byte.
Linux.
"""

import argparse
import filecmp
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

import hookviz
from hookviz.machine.memory import MEGABYTE, resident

SIDE = 64
_MOST_GROWTH = 50  # megabytes


def write(count: int, folder: Path) -> None:
    """Stream some layers of all images to the folder."""
    model = hookviz.load_model("squeezenet1_1", "random")
    layers = [each.name for each in hookviz.list_layers(model)][8::8]
    hookviz.stream(model, counted(count), layers, to=folder)


def counted(count: int) -> Iterator[Tensor]:
    """Yield images of noise, and print the megabytes in memory after each hundredth of them."""
    for seed in range(count):
        if seed % (count // 100) == 0:
            print(seed, resident() / MEGABYTE, flush=True)
        yield torch.randn(3, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))


def run(count: int, folder: Path, *, until: int | None = None) -> list[float]:
    """Stream in a process of its own, killed after `until` images; return its megabytes."""
    command = [sys.executable, "-m", "scripts.long_stream", "--images", str(count)]
    megabytes = []
    with subprocess.Popen(
        [*command, "--to", str(folder), "--only"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            number, used = line.split()
            megabytes.append(float(used))
            if until is not None and int(number) >= until:
                writer.kill()
    if until is None and writer.returncode:
        raise SystemExit(f"the run ended with status {writer.returncode}")
    return megabytes


def main() -> None:
    """Stream, kill, go on, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--to", type=Path, default=Path("maps"), help="name of the folder")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.only:
        write(chosen.images, chosen.to)
        return
    passed = True
    with tempfile.TemporaryDirectory() as base:
        broken, whole = (Path(base, name) / chosen.to.name for name in ("broken", "whole"))
        print("| run | seconds | MB after a tenth | MB at most |\n|---|---:|---:|---:|")
        for what, folder, until in (
            ("killed halfway", broken, chosen.images // 2),
            ("goes on", broken, None),
            ("whole", whole, None),
        ):
            began = time.monotonic()
            megabytes = run(chosen.images, folder, until=until)
            first, most = megabytes[10], max(megabytes[10:])
            seconds = time.monotonic() - began
            print(f"| {what} | {seconds:.0f} | {first:.0f} | {most:.0f} |", flush=True)
            passed = passed and most - first <= _MOST_GROWTH
        files = [file.relative_to(whole) for file in whole.rglob("*") if file.is_file()]
        same, other, missing = filecmp.cmpfiles(whole, broken, map(str, files), shallow=False)
        stored = hookviz.StoredActivations(broken)
        print(f"files alike {len(same)}, others {len(other) + len(missing)}")
        print(f"{len(stored.names)} images, layers {list(stored)}")
    sys.exit(not (passed and not other and not missing and len(stored.names) == chosen.images))


if __name__ == "__main__":
    main()
