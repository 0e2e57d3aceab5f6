"""The scripts of lessons: what is shown is what runs, here and without HookViz."""

import json
import re
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from hookviz.errors import SettingError, UnknownNameError
from hookviz.language.speaking import speaking
from hookviz.lessons.scripts import (
    FOLDER,
    Control,
    Script,
    as_code,
    cells,
    comment_words,
    in_the_language,
    read_script,
    run_script,
    script_names,
    script_of,
)

SCRIPTS = [read_script(name) for name in script_names()]

_ALONE = """
import contextlib, io, json, runpy, sys
printed = {}
for file in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as lines:
        runpy.run_path(file, run_name="__main__")
    printed[file] = lines.getvalue().splitlines()
assert not [name for name in sys.modules if name.startswith(("hookviz", "streamlit"))]
print(json.dumps(printed))
"""


def alone(files: list[Path], folder: Path) -> dict[str, list[str]]:
    """What each file prints, run in a Python that can't see HookViz."""
    run = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", _ALONE, *map(str, files)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(run.stdout)
    return found


def test_every_script_prints_the_same_by_itself_whatever_is_chosen(tmp_path: Path) -> None:
    """Each as its file is, and as it is shown with the first and the last of all its choices."""
    here: dict[str, tuple[str, ...]] = {}
    for script in SCRIPTS:
        file = FOLDER / f"{script.name}.py"
        here[str(file)] = run_script(script, {}).printed
        for end in (0, -1):
            choices = {control.name: control.values[end] for control in script.controls}
            shown = tmp_path / f"{script.name}{end}.py"
            shown.write_text(script.with_choices(choices), "utf-8")
            here[str(shown)] = run_script(script, choices).printed
    elsewhere = alone([Path(file) for file in here], tmp_path)
    assert {file: tuple(lines) for file, lines in elsewhere.items()} == here
    assert all(here.values()), "each of them prints something"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_choice_changes_its_constant_and_nothing_else(script: Script) -> None:
    if not script.needs_scene:  # a network has more to choose from: its layers and channels
        assert script.controls, "a learner can choose something in each of them"
    assert script.with_choices({}) == script.text
    every = product(*(control.values for control in script.controls))
    for values in every:
        choices = dict(zip((control.name for control in script.controls), values, strict=True))
        lines = script.with_choices(choices).splitlines()
        for before, after in zip(script.text.splitlines(), lines, strict=True):
            name = before.partition(" = ")[0]
            if name in choices:
                assert after.startswith(f"{name} = {as_code(choices[name])}  #")
                assert after.partition("  #")[2] == before.partition("  #")[2]
            else:
                assert after == before


def test_only_declared_values_and_scripts_that_are_there_run() -> None:
    script = read_script("remove")
    for wrong in ("0\nimport os", 8, 1.0, True):
        with pytest.raises(SettingError, match=r"PASSES of remove\.py can't be"):
            script.with_choices({"PASSES": wrong})
    with pytest.raises(SettingError, match=r"OTHER can't be chosen in remove\.py"):
        script.with_choices({"OTHER": 1})
    with pytest.raises(UnknownNameError, match="gradient"):
        read_script("gradien")
    with pytest.raises(UnknownNameError):
        read_script("../../../app")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_what_is_printed_is_in_the_pages_language_and_the_numbers_are_the_same(
    script: Script,
) -> None:
    assert in_the_language(script, script) == script
    with speaking("zh_CN"):
        spoken = in_the_language(script, script)
    run = run_script(script, {})
    said = run_script(spoken, {})
    assert said.facts == run.facts
    assert any("\u4e00" <= letter <= "\u9fff" for letter in "".join(said.printed))
    for line, original in zip(said.printed, run.printed, strict=True):
        assert re.findall(r"\d+\.\d+", line) == re.findall(r"\d+\.\d+", original)


def test_a_clone_is_not_overwritten_and_a_run_leaves_torch_alone() -> None:
    kept = run_script(read_script("in_place"), {"CLONE": True})
    assert kept.facts["wrong"] == 0
    assert kept.facts["lowest"] == kept.facts["true_lowest"]
    before = torch.get_rng_state()
    with torch.no_grad():
        run_script(Script("nobody", 'import torch\ntorch.manual_seed(3)\nprint("x")\n', ()), {})
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), before)


def test_guiding_drops_what_is_negative_at_every_relu() -> None:
    """Computed once more without hooks: the rule as_code out for the three layers."""
    run = run_script(read_script("guided"), {})
    with torch.random.fork_rng(devices=[]):
        held = runpy.run_path(str(FOLDER / "guided.py"))
    network, image = held["network"], held["image"]
    assert isinstance(network, torch.nn.Sequential)
    assert isinstance(image, torch.Tensor)
    values = [image.detach()]
    for module in network:
        values.append(module(values[-1]).detach())
    back = torch.zeros_like(values[-1])
    back[0, 0] = 1
    for module, given in zip(reversed(network), reversed(values[:-1]), strict=True):
        if isinstance(module, torch.nn.ReLU):
            back = back.clamp(min=0)
        leaf = given.clone().requires_grad_()
        (back,) = torch.autograd.grad(module(leaf), leaf, back)
    expected = (back / back.abs().max())[0, 0].numpy()
    np.testing.assert_allclose(run.pictures["guided"], expected, atol=1e-6)


def test_controls_are_read_from_the_comments_of_constants() -> None:
    assert read_script("vanish").controls == (
        Control("DEPTH", tuple(range(2, 21)), 10),
        Control("SCALE", (0.25, 0.5, 1.0, 2.0, 4.0), 1.0),
    )
    assert read_script("guided").controls[0].values == ("ring", "cross", "stripes")
    constants = re.findall(r"^([A-Z_]+) = ", read_script("gradient").text, re.MULTILINE)
    assert constants == [control.name for control in read_script("gradient").controls]
    text = '# %% The hook\nDEPTH = 2  # from 1 to 3\nx = "#"  # of one\n    # alone\n'
    assert comment_words(text) == ("of one", "alone")


def test_comments_are_in_the_language_and_what_is_run_is_the_same() -> None:
    for name in script_names():
        script = read_script(name)
        with speaking("zh_CN"):
            theirs = in_the_language(script, script)
        assert not set(comment_words(script.text)) & set(comment_words(theirs.text))
        assert script_of(name, theirs.text).controls == script.controls
        assert [title for title, _ in cells(theirs.text)] == [
            title for title, _ in cells(script.text)
        ]


def test_larger_first_weights_turn_what_vanishes_into_what_explodes() -> None:
    """A ReLU's slope is one: twice the weights, twice the gradient a layer, but for the biases."""
    script = read_script("vanish")
    once, twice = (run_script(script, {"SCALE": scale}).facts["holds"] for scale in (1.0, 2.0))
    assert float(twice) == pytest.approx(float(once) * 2**9, rel=0.1)
