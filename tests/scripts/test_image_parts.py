"""The parts of an image, of a folder that stands for one."""

import os
import subprocess
import sys
from pathlib import Path

from scripts.image_parts import bytes_of, parts_of

SCRIPT = Path(__file__).parents[2] / "scripts" / "image_parts.py"


def image(folder: Path) -> Path:
    """A small image: two packages, code, and a system."""
    sizes = {
        "lib/site-packages/torch/_C.so": 5000,
        "lib/site-packages/torch-2.14.1.dist-info/RECORD": 70,
        "lib/site-packages/pillow.libs/libjpeg.so": 300,
        "lib/site-packages/six.py": 40,
        "app/app.py": 11,
        "usr/bin/python": 900,
    }
    for name, size in sizes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(size))
    return folder


def test_each_byte_is_of_one_part(tmp_path: Path) -> None:
    whole = image(tmp_path)
    parts = parts_of(whole / "lib/site-packages", whole / "app", whole)
    assert parts == {
        "torch": 5070,
        "pillow": 300,
        "six": 40,
        "hookviz": 11,
        "system and Python": 900,
    }


def test_a_file_with_two_names_is_counted_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(100))
    os.link(tmp_path / "one", tmp_path / "two")
    assert bytes_of(tmp_path) == 100


def test_it_runs_from_standard_input_and_refuses_what_is_too_large(tmp_path: Path) -> None:
    whole = image(tmp_path)

    def run(most: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-", "--most", most, "--code", str(whole / "app")]
        return subprocess.run(
            [*command, "--whole", str(whole)],
            input=SCRIPT.read_text("utf-8"),
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(whole / "lib/site-packages")},
        )

    fits = run("1.7")
    assert fits.returncode == 0
    assert "0.0 MB  torch" in fits.stdout
    large = run("0.000001")
    assert large.returncode == 1
    assert "more than 1e-06 GB" in large.stderr
