import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_imports_point_down_only() -> None:
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_only_hooks_py_registers_hooks() -> None:
    guilty = [
        path.name
        for path in (ROOT / "hookviz").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and re.fullmatch(r"register_\w*hook", node.attr)
    ]
    assert set(guilty) == {"hooks.py"}


def test_pyplot_is_never_used() -> None:
    assert not any(
        "pyplot" in path.read_text("utf-8").replace("never `pyplot`", "")
        for path in (ROOT / "hookviz").rglob("*.py")
    )


def test_no_file_is_longer_than_an_idea() -> None:
    lengths = {
        path.name: len(path.read_text("utf-8").splitlines())
        for path in (ROOT / "hookviz").rglob("*.py")
    }
    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


def test_the_library_imports_without_streamlit() -> None:
    program = "import sys, hookviz; assert 'streamlit' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_every_module_has_its_mirrored_test() -> None:
    indirect = {
        "__init__",
        "__main__",
        "types",
        "cells",
        "layers",
        "lens",
        "pages",
        "panels",
        "srgb",
    }
    modules = {path.stem for path in (ROOT / "hookviz").glob("*.py")} - indirect
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")}
    assert modules - tests == set()
