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
from torch import nn

import hookviz
from hookviz.errors import HookVizError, SettingError, UnknownNameError
from hookviz.language.speaking import speaking
from hookviz.lessons.own_code import files_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scripts import (
    FOLDER,
    Control,
    Script,
    after_set_up,
    as_code,
    can_run_apart,
    cells,
    comment_words,
    in_the_language,
    on_scene,
    read_script,
    run_on_scene,
    run_script,
    script_names,
    script_of,
    set_up_of,
    weights_of,
)
from tests.codegen.bare_python import bare_python
from tests.lessons.conftest import scene_of
from tests.networks import Tiny, as_model, seeded
from tests.ui.lessons.parts.scenes import cat, star

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


ON_SCENES = [name for name in script_names() if read_script(name).needs_scene]


def of(name: str, scene: LessonScene, layer: str | None = None) -> Script:
    return on_scene(read_script(name), scene, layer)


def hooks_of(network: nn.Module) -> int:
    return sum(len(module._forward_hooks) for module in network.modules())


def own() -> LessonScene:
    """A network of one's own in training mode."""
    return scene_of(as_model(seeded(Tiny).train()))


@pytest.mark.parametrize("name", ON_SCENES)
def test_no_run_leaves_a_hook_or_a_change_on_the_network(name: str) -> None:
    for scene in (star(), own()):
        network, is_training = scene.model.network, scene.model.network.training
        handle = network.register_forward_hook(lambda *_call: None)
        before = {key: value.clone() for key, value in network.state_dict().items()}
        run_on_scene(of(name, scene), scene, {})
        assert hooks_of(network) == 1
        assert network.training is is_training
        handle.remove()
        assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_layers_and_lines_are_those_of_the_network() -> None:
    controls = {control.name: control for control in of("see", cat()).controls}
    names = [layer.name for layer in cat().trace.convs]
    assert controls["LAYER"].start == names[0]
    assert names[-1] in controls["LAYER"].values
    assert set(controls["LAYER"].values) <= set(names)
    assert controls["CHANNEL"].values == tuple(range(64))
    of_last = {each.name: each for each in of("see", cat(), names[-1]).controls}
    assert of_last["LAYER"].start == names[-1]
    assert len(of_last["CHANNEL"].values) == cat().trace.convs[-1].output_shape[0]
    script = of("see", cat())
    lines = after_set_up(script.text).splitlines()
    assert lines[0] == 'LAYER = "features.0"  # a conv layer'
    assert "handle.remove()  # remove" in lines
    assert not any("import" in line for line in lines)
    assert "load_file(WEIGHTS)" in set_up_of(script.text)
    assert "register_forward_hook" not in set_up_of(script.text)
    assert re.search(r"^import torch$", set_up_of(script.text), re.MULTILINE)


def test_a_channel_multiplied_by_a_hook_changes_the_scores_as_by_hand() -> None:
    script = of("change", cat())
    run = run_on_scene(script, cat(), {"CHANNEL": 5, "FACTOR": 2.0})
    network, batch = cat().model.network, cat().model_input.tensor

    def doubled(_module: nn.Module, _inputs: object, output: torch.Tensor) -> torch.Tensor:
        return torch.stack([2 * x if at == 5 else x for at, x in enumerate(output[0])])[None]

    with torch.no_grad():
        before = network(batch.clone())
        handle = network.get_submodule("features.0").register_forward_hook(doubled)
        try:
            after = network(batch.clone())
        finally:
            handle.remove()
    expected = float((after - before).abs().max())
    assert run.facts["difference"] == pytest.approx(expected, rel=1e-4)
    assert run.facts["left"] == 0
    likeliest = cat().model.categories[int(before[0].argmax())]
    assert run.printed[1].endswith(likeliest[:12])


def test_mistakes_with_hooks_show_in_the_facts() -> None:
    late = run_on_scene(of("every", cat()), cat(), {}).facts
    convs = [m for m in cat().model.network.modules() if isinstance(m, nn.Conv2d)]
    assert (late["layers"], late["found"]) == (len(convs), 1)
    assert run_on_scene(of("every", cat()), cat(), {"BIND": True}).facts["found"] == len(convs)
    facts = run_on_scene(of("remove", star()), star(), {"PASSES": 3}).facts
    size = np.prod(star().trace.convs[0].output_shape) * 4 / 1e6
    assert (facts["called"], facts["left"], facts["tensors"]) == (3, 3, 1 + 2 + 3)
    assert facts["megabytes"] == pytest.approx(6 * size)
    tidy = run_on_scene(of("remove", star()), star(), {"PASSES": 3, "REMOVE": True}).facts
    assert (tidy["called"], tidy["left"], tidy["tensors"]) == (1, 0, 3)
    assert run_on_scene(of("fails", cat()), cat(), {}).facts["left"] == 1
    assert run_on_scene(of("fails", cat()), cat(), {"USE_FINALLY": True}).facts["left"] == 0


def test_the_whole_script_computes_the_same_where_hookviz_is_not(tmp_path: Path) -> None:
    """Weights and image put beside it, as the process for edited lines gets them."""
    for name, scene in (("see", star()), ("change", cat())):
        folder = tmp_path / name
        folder.mkdir()
        files_of(scene)(folder)
        script = of(name, scene)
        here = run_on_scene(script, scene, {})
        text = script.text + (
            "import numpy as np\n"
            "drawn = [np.asarray(each.detach(), np.float32) for each in pictures.values()]\n"
            'np.savez("drawn.npz", *drawn)\n'
        )
        (folder / "script.py").write_text(text, "utf-8")
        with bare_python() as run:
            run(folder)
        assert not (folder / "error.txt").exists(), (folder / "error.txt").read_text()
        with np.load(folder / "drawn.npz") as drawn:
            for expected, file in zip(here.pictures.values(), drawn.files, strict=True):
                np.testing.assert_allclose(drawn[file], expected, atol=1e-4)


def test_a_network_of_ones_own_is_looked_at_and_not_made_anew() -> None:
    model = hookviz.wrap(Tiny(), name="mine", preprocess=star().model.preprocess)
    scene = scene_of(model, "star")
    assert not can_run_apart(scene)
    assert can_run_apart(star())
    assert run_on_scene(of("see", scene), scene, {}).facts["layer"] == scene.trace.convs[0].name
    assert "build_model()" in set_up_of(of("see", scene).text)


def test_weights_are_named_and_what_can_not_run_is_in_words() -> None:
    assert weights_of(cat()) == "squeezenet.safetensors"
    random = scene_of(hookviz.load_model("shapesnet", "random"), "star")
    assert weights_of(random) == ""
    broken = Script("broken", "# %% Set-up\n# %% The hook\nmodel.no_such_layer\n", ())
    with pytest.raises(HookVizError, match=r"broken\.py can't run on ShapesNet: .*no_such_layer"):
        run_on_scene(broken, star(), {})
