"""Scripts on the chosen network and image, against hooks registered by hand."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import hookviz
from hookviz.errors import HookVizError
from hookviz.lessons.own_code import files_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.script_scene import (
    after_set_up,
    can_run_apart,
    on_scene,
    run_on_scene,
    set_up_of,
    weights_of,
)
from hookviz.lessons.scripts import Script, read_script, script_names
from tests.codegen.bare_python import bare_python
from tests.lessons.conftest import scene_of
from tests.networks import Tiny, as_model, seeded
from tests.ui.lessons.parts.scenes import cat, star

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
