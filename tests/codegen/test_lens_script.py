"""Every lens's script is run, in a process that can't import HookViz, and its numbers compared.

What it is run with says the lens's own test in ``SCRIPTS``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from torchvision import models

import hookviz
from hookviz.codegen.facts import lens_facts_of
from hookviz.codegen.lens_script import lens_script
from hookviz.images.samples import samples
from hookviz.lenses.contract.lens import LensResult
from hookviz.lenses.contract.running import find_lens
from hookviz.models.bundled import BUNDLED
from hookviz.types import Model
from tests.codegen.bare_python import bare_python, in_ruffs_order
from tests.codegen.script_cases import ScriptCase
from tests.every_way import EVERY_WAY
from tests.networks import seeded
from tests.pictures import picture

SIDE = 64  # of the inputs


def save_three_classes(path: Path) -> None:
    torch.save(seeded(lambda: models.squeezenet1_1(num_classes=3)).state_dict(), path)


def load(network: str, folder: Path) -> Model:
    """A network of a `ScriptCase`, with all that its script finds in the folder."""
    if network == "shapesnet":
        weights = BUNDLED[network].weights_file
        (folder / weights.name).symlink_to(weights)
        return hookviz.load_model(network)
    if network == "squeezenet1_1":
        save_three_classes(folder / "mine.pth")
        return hookviz.load_model(network, folder / "mine.pth")
    return hookviz.load_model(network, "random")


SLUGS = [lens.slug for lens in hookviz.list_lenses()]
TESTS = {slug: import_module(f"tests.lenses.test_{slug.replace('-', '_')}") for slug in SLUGS}
CASES: dict[str, tuple[ScriptCase, ...]] = {slug: test.SCRIPTS for slug, test in TESTS.items()}
"""By the lens's slug: what its test says is run."""

LINES = {"maximize": 235, "dream": 170}  # a space, a robustness and costs are each functions
"""By the lens's slug, how long a script may be, without its network, if over 155 lines."""

EVERY = tuple(  # in the order in which they are run: of several networks one by turns, by night all
    (slug, place, network)
    for turn, (slug, cases) in enumerate(CASES.items())
    for place, case in enumerate(cases)
    for at, network in enumerate(case.networks)
    if EVERY_WAY or at == turn % len(case.networks)
)
RUN = pytest.mark.parametrize("run", EVERY, ids=lambda run: "-".join(map(str, run)))


@dataclass(frozen=True)
class Made:
    """What a lens found, and the script of it, which has been run in its folder."""

    result: LensResult
    code: str
    folder: Path

    @property
    def numbers(self) -> dict[str, NDArray[Any]]:
        """What the script wrote."""
        error = self.folder / "error.txt"
        assert not error.exists(), error.read_text()
        (file,) = self.folder.glob("*.npz")
        with np.load(file, allow_pickle=False) as values:
            return dict(values)


Runs = Callable[[str], dict[tuple[str, int, str], Made]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """By slug, every script of the lens, which has been run once it is asked for."""
    root = tmp_path_factory.mktemp("lenses")
    pictures = [root / "photo.png", root / "other.png"]
    for seed, path in enumerate(pictures, 1):
        picture(seed, 90, 60).save(path)

    photographs = [sample.path for sample in samples() if sample.kind == "photo"]

    @cache
    def loaded(network: str) -> Model:
        (root / network).mkdir(parents=True)
        return load(network, root / network)

    def make(slug: str, place: int, network: str) -> Made:
        model, parameters = loaded(network), dict(CASES[slug][place].parameters)
        folder = root / f"{slug}-{place}-{network.replace('/', '-')}"
        folder.mkdir()
        for file in (*pictures, *photographs, *(root / network).iterdir()):
            (folder / file.name).symlink_to(file)
        if "images" in parameters:
            parameters["images"] = [folder / name for name in parameters["images"]]
        result = hookviz.run_lens(slug, model, folder / "photo.png", size=SIDE, **parameters)
        facts = lens_facts_of(model, "photo.png", result, shape=(3, SIDE, SIDE), size=SIDE)
        code = lens_script(facts, find_lens(slug).script)
        (folder / "script.py").write_text(code)
        run_script(folder)
        return Made(result, code, folder)

    @cache
    def runs(slug: str) -> dict[tuple[str, int, str], Made]:
        return {run: make(*run) for run in EVERY if run[0] == slug}

    with bare_python() as run_script:
        yield runs


@RUN
def test_a_script_gives_the_lens_s_numbers(made: Runs, run: tuple[str, int, str]) -> None:
    slug, place, _ = run
    expected = dict(made(slug)[run].result.values)
    numbers = made(slug)[run].numbers
    left_out = getattr(TESTS[slug], "NOT_IN_SCRIPT", ())
    assert numbers.keys() | set(left_out) == expected.keys() | set(left_out)
    for name in expected.keys() - set(left_out):
        theirs, ours = numbers[name], np.asarray(expected[name])
        assert theirs.shape == ours.shape, name
        if not np.issubdtype(ours.dtype, np.number):
            np.testing.assert_array_equal(theirs, ours, name)
            continue
        largest = float(np.nanmax(np.abs(ours), initial=0))
        case = CASES[slug][place]
        off = case.levels if ours.dtype == np.uint8 else case.rounding * largest
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=off, err_msg=name)


@pytest.mark.parametrize("slug", CASES)
def test_scripts_are_written_as_people_write(made: Runs, slug: str, tmp_path: Path) -> None:
    for run, each in made(slug).items():
        (tmp_path / f"{'-'.join(map(str, run)).replace('/', '-')}.py").write_text(each.code)
        assert "import hookviz" not in each.code
        # What a script has of the network itself: names of classes, its code, a checkpoint.
        network = {"shapesnet": 55, "shapesvit": 115, "squeezenet1_1": 40}.get(run[2], 0)
        assert len(each.code.splitlines()) < LINES.get(slug, 155) + network, run
    in_ruffs_order(tmp_path)


def test_of_sound_there_is_no_script_and_it_says_so() -> None:
    network = nn.Sequential(nn.Conv1d(1, 3, 5), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    sound = torch.randn(1, 1, 30, generator=torch.Generator().manual_seed(0))
    model = hookviz.wrap(network, example=(sound,), output="logits")
    result = hookviz.run_lens("saliency", model, sound)
    facts = lens_facts_of(model, "sound.wav", result, shape=(1, 30))
    with pytest.raises(hookviz.HookVizError, match="Sequential takes 1×30"):
        lens_script(facts, find_lens("saliency").script)
