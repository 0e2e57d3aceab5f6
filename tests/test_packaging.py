"""The wheel works on its own: outside the checkout, with the assets it carries."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.every_way import EVERY_WAY

ROOT = Path(__file__).parent.parent
PROGRAM = """
import runpy, sys
from pathlib import Path
import hookviz
assert Path(hookviz.__file__).is_relative_to(sys.prefix), hookviz.__file__
from hookviz.images.samples import samples
for name in ("shapesnet", "shapesvit", "squeezenet"):
    capture = hookviz.capture(hookviz.load_model(name), samples()[0].path)
assert capture.predictions(1)[0][0] == "Egyptian cat"
grid = hookviz.make_grid(next(iter(capture.values())))
assert grid.png().startswith(b"\\x89PNG")
print(len(capture), "conv layers")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", f"--outdir={folder}"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_what_it_needs(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "hookviz/py.typed",
        "hookviz/cli/Caddyfile",
        "hookviz/ui/app.py",
        "hookviz/ui/.streamlit/config.toml",
        "hookviz/ui/components/mosaic.js",
        "hookviz/language/zh_CN.po",
        "hookviz/language/class_names/zh_CN.po",
        "hookviz/assets/bundled.safetensors",
        "hookviz/assets/shapesvit.safetensors",
        "hookviz/assets/shapesvit.json",
        "hookviz/assets/squeezenet.safetensors",
        "hookviz/assets/squeezenet.json",
        "hookviz/assets/LICENSE-squeezenet",
        "hookviz/assets/engine/LICENSE-onnxruntime",
        "hookviz/assets/engine/ort-wasm-simd-threaded.wasm.gz",
        "hookviz/assets/engine/ort.wasm.bundle.min.mjs.gz",
        "hookviz/standalone/client/live_worker.js",
        "hookviz/assets/samples/samples.json",
        "hookviz/assets/atlases/shapesnet.atlas/atlas.json",
        "hookviz/assets/atlases/squeezenet.atlas/patches.bin",
    } <= names
    assert not any(name.startswith(("tests/", "scripts/")) for name in names)


@pytest.mark.by_day
@pytest.mark.parametrize(
    "alone",
    [False, *([pytest.param(True, marks=pytest.mark.timeout(900))] if EVERY_WAY else [])],
)
def test_an_installed_wheel_captures(wheel: Path, tmp_path: Path, alone: bool) -> None:
    """With `alone` its dependencies are installed anew; else they are this environment's."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    options = ["--quiet", "--no-compile"] if alone else ["--quiet", "--no-deps"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    install = [*pip, "install", *options, str(wheel)]
    subprocess.run(install, check=True, cwd=tmp_path)
    if not alone:
        site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
        (site / "here.pth").write_text(sysconfig.get_path("purelib"))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    run = subprocess.run(
        [python, "-c", PROGRAM, str(ROOT / "tests" / "consumer.py")],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout) == (0, "26 conv layers\n"), run.stderr
    command = python.with_name("hookviz")
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert version.stdout.startswith("hookviz, version")


def test_the_pins_are_within_the_ranges() -> None:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if "==" in line]
    pins = {each.name: str(each.specifier).removeprefix("==") for each in pinned}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    app = project["optional-dependencies"]["app"]
    ranges = [Requirement(line) for line in (*project["dependencies"], *app)]
    assert {each.name for each in ranges} == set(pins)
    assert all(each.specifier.contains(pins[each.name]) for each in ranges)
