"""What `pip install hookviz` brings is enough for the library and its commands, without the app.

Each program runs where only the distributions can be found that pyproject.toml's ``dependencies``
bring, and those that these need: all others of this environment are hidden.
"""

import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hookviz.machine.installed import APP_PACKAGES
from scripts.servers import free_port

ROOT = Path(__file__).parent.parent

ALONE = """
import json, sys
from importlib.machinery import PathFinder

hidden = set(json.loads(sys.argv[1]))

class LibraryAlone:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return PathFinder.find_spec(name, path, target)

    find_distributions = PathFinder.find_distributions  # packages ask for their own version

sys.meta_path[:] = [LibraryAlone if finder is PathFinder else finder for finder in sys.meta_path]
import hookviz
from hookviz.images.samples import samples
photo = samples()[0].path
"""

PROGRAM = """
from click.testing import CliRunner
from torch import nn
from hookviz.cli.main import COMMANDS, main
from tests import library_alone

public = {name: getattr(hookviz, name) for name in hookviz.__all__}
assert len(hookviz.list_models()) > 20
assert library_alone.main() == 0
try:
    hookviz.explore(hookviz.load_model("shapesnet"), open_browser=False)
except hookviz.HookVizError as error:
    refused = str(error)

head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), *head)
model = hookviz.wrap(network, hookviz.Preprocess(resize=24, crop=24))
of_few = "attention", "segmentation"
slugs = [lens.slug for lens in hookviz.list_lenses() if lens.slug not in of_few]
assert len(slugs) > 20
for slug in slugs:
    few = {"steps": 2} if slug in {"maximize", "inversion", "dream", "toaster"} else {}
    assert hookviz.run_lens(slug, model, photo, **few).panels, slug

def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    return result.exit_code, result.output

for command in COMMANDS:
    status, text = run(command, "--help")
    assert status == 0, (command, text)
out = sys.argv[2]
for arguments in (
    ["--help"],
    ["models"],
    ["layers", "shapesnet"],
    ["capture", photo, "--model", "shapesnet", "-o", out],
    ["grid", photo, "--model", "shapesnet", "--layer", "stem.first.conv", "-o", out],
    ["lens", "grad-cam", photo, "--model", "shapesnet"],
    ["features", photo, "--model", "shapesnet"],
):
    status, text = run(*arguments)
    assert status == 0, (arguments, text)
print(json.dumps([refused, run("run"), run("doctor", "--json")]))
"""


def brought_by_the_library() -> set[str]:
    """The distributions that `pip install hookviz` installs here, by their canonical names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    waiting, brought = list(project["dependencies"]), set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name in brought or (requirement.marker and not requirement.marker.evaluate()):
            continue
        brought.add(name)
        try:
            waiting += metadata.requires(name) or ()
        except metadata.PackageNotFoundError:
            continue  # such as CUDA's libraries, beside a torch for the processor alone
    return brought


@pytest.mark.by_day
def test_all_but_the_app_works_without_its_packages_and_the_app_says_what_it_needs(
    tmp_path: Path,
) -> None:
    """Every public name, every function's example, every lens and every command, in one process."""
    brought = brought_by_the_library()
    hidden = [
        name
        for name, distributions in metadata.packages_distributions().items()
        if not brought & {str(canonicalize_name(each)) for each in distributions}
    ]
    assert {"pandas", "pyarrow", "starlette", "timm", *APP_PACKAGES} <= set(hidden)
    done = subprocess.run(
        [sys.executable, "-c", ALONE + PROGRAM, json.dumps(hidden), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "HOOKVIZ_WEIGHTS_URL": f"http://127.0.0.1:{free_port()}"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    refused, [status, text], [usable, report] = json.loads(done.stdout.splitlines()[-1])
    for said in (refused + "\n", text.removeprefix("hookviz: ")):
        assert said.startswith("The app needs packages that are not installed (streamlit, ")
        assert said.endswith("pip install 'hookviz[app]'\n")
        assert said.count("\n") == 1
    assert status == 2
    findings = {each["subject"]: each for each in json.loads(report)["findings"]}
    assert usable == 0
    assert findings["app"]["state"] == "warning"
    assert "streamlit, uvicorn" in findings["app"]["text"]
    assert findings["app"]["advice"] == "pip install 'hookviz[app]'"
    assert "streamlit" not in findings
