import io
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
import torchvision

import hookviz
from hookviz.cli import options
from hookviz.models import catalog
from hookviz.models.fetching.transfers import TransferStatus
from hookviz.settings import settings
from tests.cli.command import (
    in_terminal,
    invoke,
    mistake,
    output_of,
    save_pictures,
)
from tests.repositories import save, vit
from tests.weights_server import Answer, WeightsServer, hashed_name, random_bytes


def test_the_table_has_every_model() -> None:
    head, *rows = output_of("models").splitlines()
    assert head.split()[:4] == ["name", "title", "family", "parameters"]
    assert [row.split()[0] for row in rows] == [spec.name for spec in hookviz.list_models()]
    [resnet] = [row for row in rows if row.startswith("resnet34 ")]
    assert " ".join(resnet.split()).startswith(
        "resnet34 ResNet-34 ResNet 21,797,672 87.3 MB 73.3 %"
    )


def test_families_in_any_case_and_several() -> None:
    listed = json.loads(output_of("models", "--family", "VGG", "--family", "alexnet", "--json"))
    assert {model["family"] for model in listed} == {"AlexNet", "VGG"}
    assert listed[0] == {
        "name": "alexnet",
        "title": "AlexNet",
        "family": "AlexNet",
        "parameters": 61_100_840,
        "download_bytes": catalog.find_model("alexnet").download_bytes,
        "accuracy": 56.522,
        "trained_on": "ImageNet-1K",
        "min_size": 63,
        "on_disk": catalog.is_on_disk("alexnet"),
        "task": "classification",
        "metric": "top-1",
    }
    assert "Did you mean 'VGG'" in mistake("models", "--family", "vg")


def test_on_disk_lists_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    names = [model["name"] for model in json.loads(output_of("models", "--on-disk", "--json"))]
    assert names == ["squeezenet", "shapesnet", "shapesvit"]
    path = catalog.weights_path("resnet18")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    table = output_of("models", "--on-disk").splitlines()
    assert [row.split()[0] for row in table[1:]] == [*names, "resnet18"]
    assert all(row.endswith("yes") for row in table[1:])


def test_one_row_a_convolution_and_all_layers_as_json() -> None:
    head, *rows = output_of("layers", "shapesnet").splitlines()
    assert head.split()[:5] == ["number", "layer", "kind", "kernel", "stride"]
    expected = hookviz.list_layers(hookviz.load_model("shapesnet"))
    assert [row.split()[:2] for row in rows] == [
        [str(number), layer.name] for number, layer in enumerate(expected, start=1)
    ]
    assert rows[0].split()[1:] == [
        *("stem.first.conv", "Conv2d", "7×7", "2×2", "3×128×128", "→", "32×64×64"),
        *("channels", "first", "7×7", "4,704", f"{4704 * 64 * 64:,}", "1"),
    ]
    every = json.loads(output_of("layers", "shapesnet", "--all", "--size", 64, "--json"))
    names = [layer["name"] for layer in every]
    assert names.index("stem.first.norm") == names.index("stem.first.conv") + 1
    assert every[0]["input_shape"] == [3, 64, 64]
    assert every[0]["output_shape"] == [32, 32, 32]
    assert every[0]["receptive_field"] == [7, 7]
    assert every[0]["multiply_adds"] == 4704 * 32 * 32
    assert every[-1]["receptive_field"] == [64, 64]
    assert every[-1] | {"kind": "Linear", "output_shape": [20]} == every[-1]


def test_whatever_puts_out_maps_blocks_before_their_parts() -> None:
    rows = [row.split() for row in output_of("layers", "resnet18", "--kind", "maps").splitlines()]
    names = [row[1] for row in rows]
    assert names[1:8] == [
        *("conv1", "bn1", "relu", "maxpool", "layer1", "layer1.0", "layer1.0.conv1"),
    ]
    assert "fc" not in names
    convs = hookviz.list_layers(hookviz.load_model("resnet18", "random"))
    inside = [layer for layer in convs if layer.name.startswith("layer1.")]
    block = rows[names.index("layer1")]
    assert block[:3] == ["5", "layer1", "Sequential"]
    assert block[-2] == f"{sum(layer.multiply_adds for layer in inside):,}"
    assert block[-3] == f"{4 * (64 * 64 * 9 + 2 * 64):,}"  # batch norms learn two numbers a channel


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert output_of("layers", "squeezenet1_1").startswith("number  layer")
    assert list(tmp_path.iterdir()) == []


def test_layers_refuses_in_one_line() -> None:
    assert "Did you mean 'shapesnet'" in mistake("layers", "shapenet")
    assert "size" in mistake("layers", "shapesnet", "--size", 0)
    assert "224×224" in mistake("layers", "alexnet", "--size", 20)
    assert "no.pth" in mistake("layers", "shapesnet", "--weights", "no.pth")


TRANSFORMER = """
import torch
from torchvision.models.vision_transformer import VisionTransformer

def make():
    return VisionTransformer(32, 8, 2, 2, 24, 48, num_classes=5)
"""


def test_how_each_layer_lies_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "layouts_test_net.py").write_text(TRANSFORMER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    options = ("layers", "layouts_test_net:make", "--size", 32, "--all")
    head, *lines = output_of(*options).splitlines()
    column = slice(head.index("layout"), head.index("sees"))
    said = {line.split()[1]: line[column].strip() for line in lines}
    assert said["conv_proj"] == "channels first"
    block = "encoder.layers.encoder_layer_1."
    assert said[f"{block}ln_2"] == "4×4 patches and a class token; 24 channels"
    assert said["heads.head"] == ""
    every = {row["name"]: row for row in json.loads(output_of(*options, "--json"))}
    normed = every[f"{block}ln_2"]
    assert (normed["layout"], normed["prefix_tokens"]) == ("tokens", 1)


def test_layers_of_a_repository_of_hugging_face(tmp_path: Path) -> None:
    folder = save(vit(), tmp_path / "vit")
    result = invoke("layers", f"hf:{folder}", "--json")
    assert [layer["name"] for layer in json.loads(result.stdout)] == [
        "vit.embeddings.patch_embeddings.projection"
    ]
    assert "hf:google/vit-base-patch16-224" in mistake("layers", "hf:./there-is-none")


NAME = "squeezenet1_1"
BODY = random_bytes(200_000)


@pytest.fixture
def server() -> Iterator[WeightsServer]:
    with WeightsServer() as running:
        yield running


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty weights folder of this test's own."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HOOKVIZ_WEIGHTS_URL", raising=False)
    settings.cache_clear()
    return tmp_path / "home"


def publish(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch, name: str, body: bytes, *answers: Answer
) -> Path:
    """Make torchvision's address of a model one of the server's; where the file is to go."""
    weights = torchvision.models.get_model_weights(name).DEFAULT
    url = server.add(hashed_name(body, name), body, *answers)
    monkeypatch.setattr(weights.value, "url", url)
    return catalog.weights_path(name)


def test_weights_are_downloaded_once(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish(server, monkeypatch, NAME, BODY)
    assert output_of("fetch", NAME) == f"{NAME}: downloaded 200.0 kB.\n"
    assert path.read_bytes() == BODY
    assert output_of("fetch", NAME, "shapesnet", "squeezenet") == (
        f"{NAME}: already there, 200.0 kB, verified by the SHA-256 in its name.\n"
        "shapesnet: ships with HookViz.\n"
        "squeezenet: ships with HookViz.\n"
    )
    assert len(server.requests) == 1


def test_damaged_weights_are_reports_and_downloaded_again(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish(server, monkeypatch, NAME, BODY)
    path.parent.mkdir(parents=True)
    path.write_bytes(BODY[:-1])
    assert f"{NAME}: {path} is damaged" in mistake("fetch", "--check")
    assert path.read_bytes() == BODY[:-1]
    assert server.requests == []
    assert "downloaded 200.0 kB" in output_of("fetch", NAME)
    assert path.read_bytes() == BODY
    assert "verified" in output_of("fetch", "--check")


def test_what_can_not_be_verified_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for more in ((), ("--check",)):
        text = output_of("fetch", *more, "timm/resnet18")
        assert text.startswith("timm/resnet18: its library downloads and keeps the weights itself")
    weights = torchvision.models.get_model_weights(NAME).DEFAULT
    monkeypatch.setattr(weights.value, "url", "http://127.0.0.1:9/plain.pth")
    path = catalog.weights_path(NAME)
    path.parent.mkdir(parents=True)
    path.write_bytes(BODY)
    assert "not verified, as its name has no hash" in output_of("fetch", "--check", NAME)


def test_check_with_names_tells_what_is_missing() -> None:
    assert output_of("fetch", "--check") == "No downloaded weights are on this machine.\n"
    assert f"{NAME}: not on this machine; `hookviz fetch {NAME}`" in mistake(
        "fetch", "--check", NAME
    )
    result = invoke("fetch", "--check", "--all", "--json")
    rows = json.loads(result.stdout)
    assert result.exit_code == 2
    assert {row["name"]: row["state"] for row in rows} == {
        spec.name: "missing" if spec.download_bytes else "bundled"
        for spec in catalog.described_models()
    }


def test_a_family_goes_on_past_one_that_fails(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, monkeypatch, "squeezenet1_0", BODY, Answer(status=404))
    path = publish(server, monkeypatch, NAME, BODY)
    result = invoke("fetch", "--family", "squeezenet", "--json")
    assert result.exit_code == 2
    assert {row["name"]: (row["state"], row["bytes"]) for row in json.loads(result.stdout)} == {
        "squeezenet1_0": ("failed", 0),
        NAME: ("downloaded", 200_000),
    }
    [line] = result.stderr.splitlines()
    assert line.startswith("hookviz: squeezenet1_0: ")
    assert "404" in line
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_unknown_names_download_nothing(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    publish(server, monkeypatch, NAME, BODY)
    assert "Did you mean 'squeezenet1_1'" in mistake("fetch", NAME, "squeezenet_1_1")
    assert "Did you mean 'SqueezeNet'" in mistake("fetch", NAME, "--family", "squeeznet")
    assert "--family or --all" in mistake("fetch")
    assert server.requests == []
    assert not home.exists()


def test_a_terminal_shows_how_far_it_is(server: WeightsServer) -> None:
    name = catalog.weights_path(NAME).name
    server.add(name, random_bytes(3_000_000), Answer(pause=0.01))
    run = in_terminal("fetch", NAME, environment={"HOOKVIZ_WEIGHTS_URL": server.url})
    assert run.returncode == 2
    assert "SqueezeNet 1.1" in run.stderr
    assert "of 3.0 MB" in run.stderr
    assert "#" in run.stderr


def test_what_is_stopped_says_so_and_leaves_nothing(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    publish(server, monkeypatch, NAME, BODY, Answer(hold_after=1000))

    def stop(_status: TransferStatus) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hookviz.cli.models.download_bar", lambda _spec: nullcontext(stop))
    result = invoke("fetch", NAME)
    assert (result.exit_code, result.stdout, result.stderr.strip()) == (
        130,
        "",
        "hookviz: stopped.",
    )
    assert list(home.rglob("*.*")) == []


def test_a_grid_downloads_its_weights_first(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    network = hookviz.load_model(NAME, "random").network
    buffer = io.BytesIO()
    torch.save(network.state_dict(), buffer)
    path = publish(server, monkeypatch, NAME, buffer.getvalue())
    [image] = save_pictures(tmp_path, "a.png")
    out = tmp_path / "grid.png"
    reports: list[TransferStatus] = []
    monkeypatch.setattr(options, "download_bar", lambda _spec: nullcontext(reports.append))
    [row] = json.loads(output_of("grid", image, "--model", NAME, "--size", 64, "-o", out, "--json"))
    assert (row["weights"], row["shape"][0]) == ("pretrained", 64)
    assert out.read_bytes().startswith(b"\x89PNG")
    assert path.is_file()
    assert reports[-1].received == path.stat().st_size


def test_what_may_be_left_out_is_and_the_output_says_so(
    server: WeightsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = publish(server, monkeypatch, NAME, BODY)
    publish(server, monkeypatch, "resnet34", BODY, Answer(status=404))
    done = invoke("fetch", "--optional", "resnet34", NAME)
    assert done.exit_code == 0
    assert there.is_file()
    assert "Left out: resnet34." in done.output
    assert "404" in done.output or "no such file" in done.output
    assert "resnet34" in mistake("fetch", "--optional", "resnet43")
