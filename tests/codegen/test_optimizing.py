"""Scripts of lenses that optimise pictures, for one's own networks."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hookviz
from hookviz.codegen.facts import lens_facts_of
from hookviz.codegen.lens_script import lens_script
from hookviz.images.samples import samples
from hookviz.lenses.contract.running import find_lens
from hookviz.types import Model, Preprocess
from tests.codegen.bare_python import bare_python
from tests.pictures import picture

OWN = """
import numpy as np
import torch
from torch import nn

def build(channels):
    torch.manual_seed(1)
    first, second = nn.Conv2d(channels, 6, 3, 2), nn.Conv2d(6, 9, 3, 2)
    relu = nn.ReLU(inplace=True)
    return nn.Sequential(first, relu, second, relu, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()

def prepare(image):
    return torch.tensor(np.array(image.resize((44, 36)))).movedim(-1, 0) / 127.5 - 1
"""
SPACE: dict[str, Any] = {}
exec(OWN, SPACE)  # noqa: S102 - what a person has in a file
GREY = Preprocess(40, 36, (0.3,), (0.2,))
FILL_IN = '    raise SystemExit("Fill in {} in this script: only you have it.")'
EXCITES: dict[str, Any] = {"layer": "2", "steps": 4, "side": 40}
MACO = EXCITES | {"of": "a class", "space": "MACO", "aim": "both"}
CASES = (
    *(("maximize", EXCITES), ("maximize", MACO)),
    *(("dream", {"layer": "2", "steps": 4}), ("inversion", {"steps": 4})),
)


def own_model(channels: int) -> Model:
    """Of grey pictures, or of coloured ones with a function that makes its inputs."""
    return hookviz.wrap(SPACE["build"](channels), GREY if channels == 1 else SPACE["prepare"])


def script_of(model: Model, result: hookviz.LensResult, folder: Path) -> str:
    """Of an image in the folder, with what only the person has filled in."""
    picture(1, 60, 50).save(folder / "photo.png")
    shape = tuple(hookviz.prepare_input(model, folder / "photo.png").tensor.shape[1:])
    facts = lens_facts_of(model, "photo.png", result, shape=shape)
    code = lens_script(facts, find_lens(result.lens).script)
    (folder / "own_code.py").write_text(OWN)
    build = f"    import own_code\n\n    return own_code.build({shape[0]})"
    prepare = "    import own_code\n\n    return own_code.prepare(image)"
    code = code.replace(FILL_IN.format("build_model()"), build)
    return code.replace(FILL_IN.format("prepare(image)"), prepare)


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[Path], None]]:
    with bare_python() as running:
        yield running


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("lens", "parameters"), CASES)
def test_one_s_own_network(
    run: Callable[[Path], None],
    tmp_path: Path,
    lens: str,
    parameters: dict[str, Any],
    channels: int,
) -> None:
    model = own_model(channels)
    result = hookviz.run_lens(lens, model, picture(1, 60, 50), **parameters)
    (tmp_path / "script.py").write_text(script_of(model, result, tmp_path))
    for sample in samples():
        (tmp_path / sample.path.name).symlink_to(sample.path)
    run(tmp_path)
    error = tmp_path / "error.txt"
    assert not error.exists(), error.read_text()
    (file,) = tmp_path.glob("*.npz")
    with np.load(file) as numbers:
        for name, ours in result.values.items():
            if np.issubdtype(ours.dtype, np.number):
                off = 3 if ours.dtype == np.uint8 else 1e-3 * np.abs(ours).max()
                np.testing.assert_allclose(numbers[name], ours, rtol=0, atol=off, err_msg=name)


def test_photographs_are_asked_for_and_an_image_of_no_use_is_not_read(
    run: Callable[[Path], None], tmp_path: Path
) -> None:
    model = own_model(1)
    plain = hookviz.run_lens("maximize", model, picture(), **EXCITES)
    assert "photo.png" not in script_of(model, plain, tmp_path)
    result = hookviz.run_lens("maximize", model, picture(), **MACO)
    (tmp_path / "script.py").write_text(script_of(model, result, tmp_path))
    run(tmp_path)
    error = (tmp_path / "error.txt").read_text()
    assert error.startswith("Put ['cat.jpg', 'coffee.jpg', ")
    assert "where this runs, or other photographs into PHOTOGRAPHS" in error


def test_as_many_steps_and_layers_as_were_done(tmp_path: Path) -> None:
    model = own_model(1)
    result = hookviz.run_lens("inversion", model, picture(), steps=2)
    whole = script_of(model, result, tmp_path)
    assert "photo.png" in whole
    assert '    "0",\n    "2",\n' in whole
    first = {"layers": result.values["layers"][:1]}
    stopped = hookviz.LensResult(
        result.lens, result.panels, {**result.values, **first}, result.chosen, result.seconds
    )
    assert 'LAYERS = ("0",)' in script_of(model, stopped, tmp_path)
