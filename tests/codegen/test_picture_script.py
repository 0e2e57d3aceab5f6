"""Every kind of script is run, in a process that can't import HookViz, and its pixels compared."""

import ast
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torchvision import models
from torchvision.models.video.swin_transformer import SwinTransformer3d

import hookviz
from hookviz.codegen.facts import PictureFacts, picture_facts_of
from hookviz.codegen.picture_script import function_capture, picture_script
from hookviz.drawing.grid import make_grid
from hookviz.models import catalog, shapesnet
from hookviz.models.bundled import BUNDLED
from hookviz.settings import ASSETS
from hookviz.types import Model, Preprocess
from tests.capturing.test_watched_pass import IMAGE, Article
from tests.codegen.bare_python import bare_python, in_ruffs_order
from tests.networks import hook_count, seeded
from tests.pictures import picture

pytestmark = pytest.mark.rest

OWN_NETWORK = """
import torch
from torch import nn

class Parts(nn.Module):
    def forward(self, images):
        return {"plain": images, "more": (images.abs(), images * 3)}

class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(CHANNELS, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4, 6, 3, stride=2)
        self.parts = Parts()

    def forward(self, images):
        found = self.relu(self.conv2(self.relu(self.conv1(images))))
        return self.parts(found)["more"][1].mean((2, 3))

def build():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        network = Tiny()
    with torch.no_grad():
        network.conv1.weight[0] *= 1e-38  # all but dead
        network.conv1.bias[0] = 0
        network.conv1.weight[1] = 0  # dead
    return network

def prepare(image):
    values = torch.tensor(list(image.resize((20, 12)).convert("L").tobytes())) / 255
    return values.reshape(1, 12, 20).expand(CHANNELS, -1, -1)
"""


def own_code(channels: int) -> dict[str, Any]:
    """What a person's own file defines."""
    space: dict[str, Any] = {"__name__": "own"}
    exec(OWN_NETWORK.replace("CHANNELS", str(channels)), space)  # noqa: S102
    return space


@dataclass(frozen=True)
class Case:
    """One view: the model, what is captured, how it is drawn, and what a person fills in."""

    model: Callable[[], Model]
    layer: str
    seen: dict[str, Any] = field(default_factory=dict)
    drawn: dict[str, Any] = field(default_factory=dict)
    channel: int | None = None
    image: Callable[[], Image.Image] = lambda: picture(1, 90, 60)
    name: str = "photo.png"
    files: Callable[[Path], object] = lambda folder: None
    filled_in: dict[str, str] = field(default_factory=dict)


def tilted() -> Image.Image:
    """A picture whose EXIF data say that it lies on its side."""
    image = picture(2, 90, 60)
    image.getexif()[0x0112] = 6
    return image


def own(channels: int, preprocess: Any = None) -> Callable[[], Model]:
    return lambda: hookviz.wrap(own_code(channels)["build"](), preprocess, name='my "net"')


def own_file(channels: int) -> Callable[[Path], object]:
    code = OWN_NETWORK.replace("CHANNELS", str(channels))
    return lambda folder: (folder / f"own{channels}.py").write_text(code)


def checkpoint(name: str, file: str, save: Callable[[Path], object]) -> Callable[[], Model]:
    """A catalog model with weights from a file, which is left lying about."""

    def load() -> Model:
        folder = Path(os.environ["TORCH_HOME"])
        save(folder / file)
        return hookviz.load_model(name, folder / file)

    return load


def save_three_classes(path: Path) -> None:
    state = seeded(lambda: models.squeezenet1_1(num_classes=3)).state_dict()
    torch.save({"state_dict": {f"module.{key}": value for key, value in state.items()}}, path)


def save_three_shapes(path: Path) -> None:
    save_file(seeded(lambda: shapesnet.ShapesNet(3)).state_dict(), path)


def save_googlenet(path: Path) -> None:
    torch.save(seeded(lambda: models.googlenet(init_weights=False)).state_dict(), path)


def save_wrapped(path: Path) -> None:
    """As a training script saves it: under another key, among optimiser, averages and the rest."""
    state = seeded(lambda: models.squeezenet1_1(num_classes=3)).state_dict()
    other = {key: value + 1 for key, value in state.items()}
    momenta = {place: {"exp_avg": value} for place, value in enumerate(state.values())}
    saved = {
        "epoch": 3,
        "best": torch.tensor(0.5),
        "ema_state": other,
        "optimizer": {"state": momenta, "param_groups": [{"lr": 0.1}]},
        "Model_State_Dict": {f"_orig_mod.module.{key}": value for key, value in state.items()},
    }
    torch.save(saved, path)


def save_under_another_name(path: Path) -> None:
    """In a class of one's own, beside a loss's weights, in half precision, by an old torch."""
    state = seeded(lambda: models.mnasnet0_5(num_classes=3)).state_dict()
    inner = {f"model.backbone.{key}": value for key, value in state.items()}
    kept = {key: value for key, value in inner.items() if "num_batches" not in key}
    halved = {key: value.half() for key, value in kept.items()}
    torch.save({"swa": {}, "student": {**halved, "loss.weight": torch.ones(3)}}, path)


def save_old_densenet(path: Path) -> None:
    state = seeded(models.densenet121).state_dict()
    numbered = re.compile(r"(denselayer\d+\.(?:norm|conv))([12]\.)")
    old = {numbered.sub(r"\1.\2", key): value for key, value in state.items()}
    assert old.keys() != state.keys()
    torch.save({"net": old}, path, _use_new_zipfile_serialization=False)


CASES = {
    "the first thing on the screen": Case(
        lambda: hookviz.load_model("squeezenet"),
        "features.0",
        drawn={"scale": "percentile"},
        image=lambda: Image.open(ASSETS / "samples" / "cat.jpg"),
        name="cat.jpg",
    ),
    "the bundled one for photographs, the whole image": Case(
        lambda: hookviz.load_model("squeezenet"),
        "features.6.expand3x3",
        seen={"size": 160, "whole": True},
        drawn={"scale": "symmetric", "sort": "max", "top": 9},
    ),
    "the first of the highest, and one alone": Case(
        lambda: hookviz.load_model("shapesnet"),
        "stage1.first.conv",
        drawn={"scale": "symmetric", "sort": "max", "top": 16, "colormap": "berlin"},
        channel=22,
    ),
    "pretrained, before a ReLU in place, from a tilted photograph": Case(
        lambda: hookviz.load_model("squeezenet1_1"),
        "features.0",
        drawn={"scale": "percentile"},
        image=tilted,
        name="tilted photo.jpg",
    ),
    "random, depthwise, each channel's own scale": Case(
        lambda: hookviz.load_model("mobilenet_v2", "random"),
        "features.1.conv.0.0",
        seen={"size": 64},
        drawn={"scale": "channel", "sort": "variance", "top": 16},
        channel=3,
    ),
    "bicubic, most zeros first": Case(
        lambda: hookviz.load_model("mnasnet0_5", "random"),
        "layers.2",
        seen={"size": 64},
        drawn={"scale": "percentile", "sort": "zeros"},
    ),
    "so many values that a last digit would show": Case(
        lambda: hookviz.load_model("resnet18", "random"), "layer1.0.conv2"
    ),
    "a transformer's tokens": Case(
        lambda: hookviz.load_model("shapesvit"), "blocks.1.mlp.act", drawn={"top": 9}, channel=7
    ),
    "a checkpoint": Case(
        checkpoint("squeezenet1_1", "mine.pth", save_three_classes),
        "classifier.1",
        files=lambda folder: save_three_classes(folder / "mine.pth"),
    ),
    "a checkpoint among much else": Case(
        checkpoint("squeezenet1_1", "wrapped.pth", save_wrapped),
        "features.3.expand1x1",
        files=lambda folder: save_wrapped(folder / "wrapped.pth"),
    ),
    "a checkpoint of a class around the network": Case(
        checkpoint("mnasnet0_5", "around.ckpt", save_under_another_name),
        "layers.9.0.layers.0",
        seen={"size": 64},
        files=lambda folder: save_under_another_name(folder / "around.ckpt"),
    ),
    "a checkpoint with names as they were": Case(
        checkpoint("densenet121", "old.tar", save_old_densenet),
        "features.denseblock1.denselayer2.conv2",
        seen={"size": 64},
        files=lambda folder: save_old_densenet(folder / "old.tar"),
    ),
    "a checkpoint with training heads": Case(
        checkpoint("googlenet", "mine.pt", save_googlenet),
        "conv1.conv",
        seen={"size": 64},
        files=lambda folder: save_googlenet(folder / "mine.pt"),
    ),
    "a checkpoint of shapes": Case(
        checkpoint("shapesnet", "mine.safetensors", save_three_shapes),
        "stem.first.conv",
        files=lambda folder: save_three_shapes(folder / "mine.safetensors"),
    ),
    "after a ReLU in place that runs twice, its second call": Case(
        lambda: hookviz.load_model("resnet18", "random"),
        "layer1.0.relu#1",
        seen={"size": 64},
        drawn={"scale": "balanced"},
        channel=7,
    ),
    "a layer that has its channels last": Case(
        lambda: hookviz.load_model("convnext_tiny", "random"),
        "features.1.0.block.3",
        seen={"size": 64},
        drawn={"scale": "percentile", "sort": "mean", "top": 20},
        channel=None,
    ),
    "tokens behind a class token": Case(
        lambda: hookviz.load_model("timm/vit_tiny_patch16_224", "random"),
        "blocks.0.mlp.act",
        drawn={"scale": "layer", "sort": "max", "top": 30},
    ),
    "one's own network, a second call, grey, thin and whole": Case(
        own(1, Preprocess(resize=20, crop=16, mean=(0.4,), std=(0.3,))),
        "relu#1",
        seen={"whole": True},
        image=lambda: picture(3, 1500, 12),
        files=own_file(1),
        filled_in={"build_model": "    from own1 import build\n\n    return build()"},
    ),
    "one's own network and preprocessing, a part of an output": Case(
        own(3, own_code(3)["prepare"]),
        "parts[more][1]",
        files=own_file(3),
        channel=1,
        filled_in={
            "build_model": "    from own3 import build\n\n    return build()",
            "prepare": "    from own3 import prepare as mine\n\n    return mine(image)",
        },
    ),
    "a crop beyond the image, and channels with tiny ranges and none": Case(
        own(3, Preprocess(resize=20, crop=33)),
        "conv1",
        drawn={"scale": "channel"},
        image=lambda: picture(4, 41, 37),
        files=own_file(3),
        filled_in={"build_model": "    from own3 import build\n\n    return build()"},
    ),
}


@dataclass(frozen=True)
class Made:
    """What a case's script left behind, and the grid that it should look like."""

    grid: hookviz.Grid
    facts: PictureFacts
    code: str
    folder: Path

    def pixels(self, more: str = "") -> Any:
        found = [path for path in self.folder.glob("*.png") if path.name != "photo.png"]
        chosen = [path for path in found if ("-channel-" in path.name) == bool(more)]
        assert len(chosen) == 1, found
        return rgba(chosen[0].read_bytes())


def rgba(png: bytes) -> Any:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGBA"))


@pytest.fixture(scope="module", autouse=True)
def torch_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A torch home of our own where SqueezeNet's download lies already."""
    home = tmp_path_factory.mktemp("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_HOME", str(home))
        path = catalog.weights_path("squeezenet1_1")
        path.parent.mkdir(parents=True)
        torch.save(seeded(models.squeezenet1_1).state_dict(), path)
        yield home


@pytest.fixture(scope="module")
def run(torch_home: Path) -> Iterator[Callable[[Path], None]]:
    with bare_python() as started:
        yield started


@pytest.fixture(scope="module")
def made(run: Callable[[Path], None], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """Every case, its script run."""
    done = {}
    for name, case in CASES.items():
        folder = tmp_path_factory.mktemp("facts")
        for network in BUNDLED.values():
            (folder / network.weights_file.name).symlink_to(network.weights_file)
        image = case.image()
        image.save(folder / case.name, exif=image.getexif())
        case.files(folder)
        model = case.model()
        captured = hookviz.capture(
            model, folder / case.name, case.layer.split("#")[0].split("[")[0], **case.seen
        )
        grid = hookviz.make_grid(captured[case.layer], **case.drawn)
        facts = picture_facts_of(model, case.name, grid, channel=case.channel, **case.seen)
        code = picture_script(facts)
        filled_in = code
        for function, body in case.filled_in.items():
            filled_in = re.sub(rf"    raise SystemExit\(.*{function}.*", body, filled_in)
        (folder / "script.py").write_text(filled_in)
        run(folder)
        done[name] = Made(grid, facts, code, folder)
    return done


@pytest.mark.parametrize("name", CASES)
def test_the_script_draws_the_same_pixels(made: dict[str, Made], name: str) -> None:
    found, case = made[name], CASES[name]
    error = found.folder / "error.txt"
    assert not error.exists(), error.read_text()
    expected = rgba(found.grid.png())
    colours = np.ascontiguousarray(expected).view(np.uint32)  # a pixel as one number
    assert len(np.unique(colours)) > 30  # else anything would do
    np.testing.assert_array_equal(found.pixels(), expected)
    if case.channel is not None:
        cell = 512 // max(found.grid.shape[1:])
        one = rgba(found.grid.channel_png(case.channel, cell))
        np.testing.assert_array_equal(found.pixels("channel"), one)


def test_the_scripts_are_written_as_people_write(made: dict[str, Made], tmp_path: Path) -> None:
    for number, name in enumerate(CASES):
        code = made[name].code
        (tmp_path / f"script_{number}.py").write_text(code)
        assert "import hookviz" not in code, name
        most = 95 + 55 * ("class ShapesNet" in code) + 20 * ("def weights_in" in code)
        most += 105 * ("class ShapesViT" in code)
        assert len(code.splitlines()) < most, name
    in_ruffs_order(tmp_path)


def test_a_script_tells_what_only_the_person_has(
    made: dict[str, Made], run: Callable[[Path], None], tmp_path: Path
) -> None:
    name = "one's own network and preprocessing, a part of an output"
    (tmp_path / "script.py").write_text(made[name].code)
    run(tmp_path)
    says = (tmp_path / "error.txt").read_text()
    assert says.startswith("Fill in build_model() in this script")


def test_a_script_says_which_weights_it_does_not_find(
    made: dict[str, Made], run: Callable[[Path], None], tmp_path: Path
) -> None:
    found = made["a checkpoint"]
    state = seeded(lambda: models.squeezenet1_1(num_classes=3)).state_dict()
    state["classifier.new.weight"] = state.pop("classifier.1.weight")
    torch.save({"model_state_dict": state}, tmp_path / "mine.pth")
    picture().save(tmp_path / "photo.png")
    (tmp_path / "script.py").write_text(found.code)
    run(tmp_path)
    says = (tmp_path / "error.txt").read_text()
    assert says.startswith("mine.pth has no ['classifier.1.weight']; rename what it calls so, of")
    assert "'classifier.new.weight'" in says.splitlines()[0]


def test_a_script_stops_at_values_that_have_no_colour(
    made: dict[str, Made], run: Callable[[Path], None], tmp_path: Path
) -> None:
    found = made["a checkpoint of shapes"]
    state = shapesnet.ShapesNet(3).state_dict()
    state["stem.first.conv.weight"].fill_(torch.nan)
    save_file(state, tmp_path / "mine.safetensors")
    picture().save(tmp_path / "photo.png")
    (tmp_path / "script.py").write_text(found.code)
    run(tmp_path)
    assert "NaN" in (tmp_path / "error.txt").read_text()


@pytest.mark.parametrize(
    "name", ['a""" + boom() + """.png', "a'\"\\\n#\r\x00.png", "ünï 😀\u202e.png", "{x}.png"]
)
def test_a_name_stays_a_name(made: dict[str, Made], name: str) -> None:
    facts = replace(made["a checkpoint"].facts, image=name, weights=name)
    tree = ast.parse(picture_script(facts))
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert constants["IMAGE"] == constants["WEIGHTS"] == name
    assert "boom" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_bare_numbers_and_a_channel_that_is_not_shown_have_no_recipe(
    tiny: Model, noise: Tensor
) -> None:
    grid = hookviz.make_grid(torch.rand(3, 4, 4))
    with pytest.raises(hookviz.HookVizError, match="bare numbers"):
        picture_facts_of(tiny, "photo.png", grid)
    grid = hookviz.make_grid(hookviz.capture(tiny, noise, "conv1")["conv1"], top=2)
    with pytest.raises(hookviz.HookVizError, match=r"Channel 3 .*2 of 4 shown"):
        picture_facts_of(tiny, "photo.png", grid, channel=3)


@pytest.mark.parametrize("layer", ["patch_embed.proj", "features.0.0.mlp.1"])
def test_the_script_of_a_clip_s_layer_draws_the_frame_that_is_shown(
    layer: str, tmp_path: Path
) -> None:
    network = seeded(lambda: SwinTransformer3d([2, 4, 4], 12, [2], [2], [2, 4, 4], num_classes=5))
    model = hookviz.wrap(network, Preprocess(36, 32, frames=4), name="mine")
    picture(1, 90, 60).save(tmp_path / "photo.png")
    activation = hookviz.capture(model, tmp_path / "photo.png", layer)[layer]
    code = picture_script(picture_facts_of(model, "photo.png", make_grid(activation, depth=1)))
    (line,) = (line for line in code.splitlines() if line.startswith("maps = "))
    names = {"outputs": [activation.raw.unsqueeze(0)]}
    found = eval(line.removeprefix("maps = "), names)  # noqa: S307 - our own
    np.testing.assert_array_equal(found, activation.values[:, 1].numpy())
    assert "values = values.unsqueeze(1).repeat(1, 4, 1, 1)" in code
    assert "(1, channels, frames, height, width)" in code


@pytest.mark.parametrize("train", [False, True])
def test_a_network_of_ones_own_stays_in_the_mode_that_it_is_shown_in(train: bool) -> None:
    model = hookviz.wrap(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.Dropout()).train(), Preprocess(32, 32), train=train
    )
    grid = hookviz.make_grid(hookviz.capture(model, picture())["0"])
    script = picture_script(picture_facts_of(model, "cat.jpg", grid))
    assert ("model = build_model().eval()\n" in script) is not train
    assert ("model = build_model()\n" in script) is train


def kept(network: nn.Module, name: str) -> list[Any]:
    names: dict[str, Any] = {"model": network, "batch": IMAGE[None], "torch": torch}
    names["TorchFunctionMode"] = TorchFunctionMode
    exec(function_capture(name, ""), names)  # noqa: S102 - what a person runs
    return list(names["outputs"])


@pytest.mark.parametrize("in_place", [False, True])
def test_the_lines_keep_what_the_function_puts_out(in_place: bool) -> None:
    network = seeded(lambda: Article(in_place))
    plain = seeded(Article)
    [rectified] = kept(network, "relu() after conv2")
    before = F.max_pool2d(torch.relu(plain.conv1(IMAGE[None])), 2)
    assert torch.equal(rectified, plain.conv2(before).relu())
    assert hook_count(plain) == 0
