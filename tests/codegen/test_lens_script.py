"""Every lens's script is run, in a process that can't import HookViz, and its numbers compared.

A new lens needs a file in `hookviz/codegen/lenses`, called by its slug, and a row in `CASES`.
Over 300 lines: that table has every lens.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torchvision import models

import hookviz
from hookviz.codegen.lens_script import lens_recipe_of, lens_script, module_of
from hookviz.images.samples import samples
from hookviz.lenses.contract.result import LensResult
from hookviz.lenses.contract.running import find_lens
from hookviz.models.bundled import BUNDLED
from hookviz.types import Model
from tests.codegen.bare_python import bare_python, in_ruffs_order
from tests.every_way import EVERY_WAY
from tests.networks import seeded
from tests.pictures import picture

SIDE = 64  # of the inputs
FEW = {"steps": 6, "side": 48}  # of what climbs, while rounding is small
LEVELS = 3  # by which its pictures may be off: channels come last there, and not in the script
STAYS = "stay, as in torch.nn.utils.prune"


def save_three_classes(path: Path) -> None:
    torch.save(seeded(lambda: models.squeezenet1_1(num_classes=3)).state_dict(), path)


def load(network: str, folder: Path) -> Model:
    """A network of `NETWORKS`, with all that its script finds in the folder."""
    if network == "shapesnet":
        weights = BUNDLED[network].weights_file
        (folder / weights.name).symlink_to(weights)
        return hookviz.load_model(network)
    if network == "squeezenet1_1":
        save_three_classes(folder / "mine.pth")
        return hookviz.load_model(network, folder / "mine.pth")
    return hookviz.load_model(network, "random")


SHAPESNET, SQUEEZENET, RESNET, CONVNEXT = (
    *(("shapesnet",), ("squeezenet1_1",)),
    *(("resnet18",), ("convnext_tiny",)),
)
NETWORKS = (*SHAPESNET, *SQUEEZENET, *RESNET)
"""Weights in the box; a checkpoint, ReLUs in place; those and shortcuts, layers that run twice.

ConvNeXt has blocks that hold weights, and channels last.
"""


@dataclass(frozen=True)
class Case:
    """A lens with parameters, on networks; how far its script may be off, by the largest number.

    Of pictures, which have levels of 0 to 255, it may be `levels` off.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    networks: tuple[str, ...] = NETWORKS
    rounding: float = 0
    levels: int = 0


CASES: dict[str, tuple[Case, ...]] = {
    "grad-cam": (
        Case(),
        Case({"target": 1, "method": "Grad-CAM++"}, SQUEEZENET),
        Case({"target": 1, "method": "LayerCAM"}, SHAPESNET),
        Case({"method": "Eigen-CAM"}, SQUEEZENET),
        Case({"method": "Score-CAM", "top": 12}, SHAPESNET, 1e-5),  # here a mask at a time
    ),
    "gradients": (
        Case({"target": 2}),
        Case({"layer": "stage1.first.conv", "of": "stage2.second.conv", "channel": 3}, SHAPESNET),
        Case(
            {"layer": "conv1", "of": "layer2.0.conv1", "channel": 1, "row": 2, "column": 3}, RESNET
        ),
    ),
    "saliency": (
        Case(),
        Case({"method": "input × gradient", "target": 1}, SHAPESNET),
        Case({"beside_random": True}, SHAPESNET),
        Case({"method": "SmoothGrad", "samples": 3, "noise": 0.2}, SQUEEZENET),
        Case({"method": "guided backpropagation"}),
        Case({"layer": "features.3.expand1x1", "channel": 5}, SQUEEZENET),
        Case({"layer": "stage1.first.conv", "channel": 7, "method": "SmoothGrad"}, SHAPESNET),
    ),
    "occlusion": (  # here a square at a time
        Case({"window": 20, "stride": 16}, rounding=1e-4),
        Case({"baseline": "blurred", "target": 1, "stride": 30}, SHAPESNET, 1e-4),
        Case(
            {
                "layer": "features.3.expand1x1",
                "channel": 5,
                "row": 3,
                "column": 2,
                "baseline": "black",
                "window": 24,
                "stride": 20,
            },
            SQUEEZENET,
            1e-4,
        ),
    ),
    "integrated-gradients": (  # here a point of the way at a time
        Case({"steps": 5}, rounding=1e-5),
        Case({"baseline": "grey", "target": 1, "steps": 4}, SHAPESNET, 1e-5),
        Case(
            {"layer": "layer2.0.conv1", "channel": 3, "steps": 4, "baseline": "blurred"},
            RESNET,
            1e-5,
        ),
    ),
    "effective-receptive-field": (
        Case({"images": ("other.png",)}, rounding=1e-6),
        Case({"layer": "stage2", "channel": 3, "images": ()}, SHAPESNET, 1e-6),
        Case({"layer": "features.3", "row": 2, "column": 3, "count": 1}, SQUEEZENET, 1e-6),
    ),
    "summary": (Case(), Case({"layers": "convolutions"}, RESNET), Case(networks=CONVNEXT)),
    "kernels": (
        Case(),
        Case({"show": "norm over inputs", "threshold": 0.3}, RESNET),
        Case({"layer": "features.3.squeeze", "threshold": 0.2}, SQUEEZENET),
        Case({"layer": "stage1.first.conv", "channel": 4, "threshold": 1.0}, SHAPESNET),
    ),
    # In double precision too a sum's order may depend on where the numbers lie in memory.
    "verify": (Case(rounding=1e-8), Case(networks=CONVNEXT, rounding=1e-8)),
    "inputs": (
        Case(),
        Case({"layer": "layer2.1.relu", "call": 1}, RESNET),
        Case({"layer": "features.1"}, SQUEEZENET),
    ),
    "health": (Case(), Case({"layer": "stage2.second.conv"}, SHAPESNET), Case(networks=CONVNEXT)),
    "ablate": (
        Case(),
        Case(
            {"mode": "keep only", "channels": "1, 3-5", "downstream": "stage3.first.conv"},
            SHAPESNET,
        ),
        Case({"mode": "scale", "channels": "0, 2", "factor": -1.5}, RESNET),
        Case({"mode": "threshold", "limit": 0.3}, SHAPESNET),
        Case({"mode": "threshold", "limit": 0.1, "channels": "0-9"}, SQUEEZENET),
    ),
    "embedding": (
        Case(),
        Case({"pool": "flat", "images": ("photo.png", "other.png")}, SQUEEZENET),
        Case({"layer": "features.1.0.block.3", "images": ("other.png",)}, CONVNEXT),
    ),
    "responds-here": (
        Case(),
        Case({"layer": "stage2", "region": "brush:6x4:3.2.4.6.1.3"}, SHAPESNET),
        Case({"layer": "features.3", "region": "rect:0.5,0.9,0.13,0.21"}, SQUEEZENET),
    ),
    "across-images": (
        Case({"images": ("other.png",), "channel": 3}),
        Case({"layer": "stage1", "images": ()}, SHAPESNET),
    ),
    "gradient-flow": (
        Case(),
        Case({"clipping": "by value", "limit": 1e-3, "target": 1}, SQUEEZENET),
        Case({"clipping": "by value", "limit": 1e-4, "at": "layer2.0.conv1"}, RESNET),
        Case({"clipping": "by norm", "limit": 1e-2, "at": "stage2.first.conv"}, SHAPESNET),
        Case({"clipping": "by norm", "limit": 1e-2}, SHAPESNET, 1e-6),  # torch's is in float32
    ),
    "channels-that-matter": (  # here a pass for each channel
        Case({"layer": "stage1.first.conv"}, SHAPESNET, 1e-5),
        Case({"layer": "features.6.squeeze"}, SQUEEZENET, 1e-5),
        Case({"layer": "layer1.0.conv2"}, RESNET, 1e-4),  # of scores that are larger by far
    ),
    "prune-weights": (
        Case(),
        Case({"most": 60, "step": 25, "keep": 70}, SQUEEZENET),
        Case({"where": "this layer alone", "layer": "stage1.first.conv"}, SHAPESNET),
        Case({"method": "random weights", "seed": 3, "step": 40}, SHAPESNET),
        Case({"method": "channels by L1 norm", "step": 40, "keep": 30}, RESNET),
        Case({"method": "channels by L2 norm", "step": 40, "biases": STAYS}, SHAPESNET),
        Case({"method": "random channels", "seed": 5, "step": 40}, SQUEEZENET),
        Case(
            {
                "method": "channels by effect",
                "where": "this layer alone",
                "layer": "stage1.first.conv",
                "step": 40,
            },
            SHAPESNET,
        ),
    ),
    "trace": (Case(), Case(networks=CONVNEXT)),
    "maximize": (
        Case(FEW, NETWORKS, 1e-3, LEVELS),
        Case(
            FEW | {"of": "a class", "target": 2, "aim": "both", "beside_random": True},
            SHAPESNET,
            1e-3,
            LEVELS,
        ),
        Case(
            FEW | {"of": "classes with weights", "weights": "0, 2:-0.5", "space": "MACO"},
            SQUEEZENET,
            *(1e-3, LEVELS),
        ),
        Case(
            FEW
            | {"of": "channels side by side", "layer": "stage2.second.conv", "channels": "1, 3-5"}
            | {"penalty": "total variation", "aim": "what silences it", "steady": False},
            SHAPESNET,
            *(1e-3, LEVELS),
        ),
        Case(
            FEW
            | {"of": "channels with weights", "layer": "layer2.0.conv1", "weights": "12, 80:-1"}
            | {"row": 2, "column": 3, "pictures": 3, "seed": 7, "penalty": "L2", "strength": 2.0},
            RESNET,
            *(1e-3, LEVELS),
        ),
        Case(
            FEW | {"layer": "head", "row": 0, "column": 0, "space": "MACO", "pictures": 2},
            SHAPESNET,
            *(1e-3, LEVELS),
        ),
    ),
    "dream": (
        Case({"steps": 6}, NETWORKS, 1e-3, LEVELS),
        Case({"steps": 6, "layer": "features.3", "rate": 2.0, "seed": 5}, SQUEEZENET, 1e-3, LEVELS),
    ),
    "inversion": (
        Case({"steps": 6, "layers": 3}, NETWORKS, 1e-3, LEVELS),
        Case({"steps": 6, "layer": "layer2", "smooth": 0.5, "seed": 3}, RESNET, 1e-3, LEVELS),
    ),
}
"""By the lens's slug: what is run."""

LEFT_OUT = {
    "saliency": ("random_map", "rank_correlation"),  # of other weights
    "maximize": ("random_pictures", "random_values", "random_history", "random_noise"),  # as well
    "integrated-gradients": ("completeness_error",),  # itself a difference of the size of rounding
    # what a cell could see takes HookViz to follow through the network's windows
    "effective-receptive-field": ("box", "share"),
    "trace": ("seconds",),  # no two passes take the same time
    "prune-weights": (  # of the smaller network, which takes HookViz to make
        *("smaller_logits", "smaller_difference", "parameters", "multiply_adds"),
        "seconds_of_a_pass",
    ),
    "embedding": ("names",),  # the script has the files' own names, and no second one for one twice
}
"""By the lens's slug, numbers that are not compared, each with the reason."""

LINES = {"maximize": 180}  # with a space, a robustness, a goal and two costs, each a function
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
        (root / network).mkdir()
        return load(network, root / network)

    def make(slug: str, place: int, network: str) -> Made:
        model, parameters = loaded(network), dict(CASES[slug][place].parameters)
        folder = root / f"{slug}-{place}-{network}"
        folder.mkdir()
        for file in (*pictures, *photographs, *(root / network).iterdir()):
            (folder / file.name).symlink_to(file)
        if "images" in parameters:
            parameters["images"] = [folder / name for name in parameters["images"]]
        result = hookviz.run_lens(slug, model, folder / "photo.png", size=SIDE, **parameters)
        recipe = lens_recipe_of(
            *(model, "photo.png", slug, result.chosen, result.values),
            shape=(3, SIDE, SIDE),
            size=SIDE,
        )
        code = lens_script(recipe)
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
    left_out = LEFT_OUT.get(slug, ())
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
        (tmp_path / f"{'-'.join(map(str, run))}.py").write_text(each.code)
        assert "import hookviz" not in each.code
        network = {"shapesnet": 55, "squeezenet1_1": 40}.get(run[2], 0)  # classes, a checkpoint
        assert len(each.code.splitlines()) < LINES.get(slug, 155) + network, run
    in_ruffs_order(tmp_path)


@pytest.mark.parametrize("slug", [lens.slug for lens in hookviz.list_lenses()])
def test_every_lens_has_a_script(slug: str) -> None:
    file = module_of(slug).replace(".", "/") + ".py"
    assert find_spec(module_of(slug)), f"write {file}: the lens {slug} without HookViz"
    assert slug in CASES, f"add a row for {slug} to CASES: what {file} writes is not run"


def test_every_script_is_of_a_lens() -> None:
    folder = find_spec("hookviz.codegen.lenses")
    assert folder
    assert folder.submodule_search_locations
    files = Path(folder.submodule_search_locations[0]).glob("*.py")
    slugs = {path.stem.replace("_", "-") for path in files} - {"--init--"}
    assert {find_lens(slug).slug for slug in slugs | CASES.keys()} == slugs
