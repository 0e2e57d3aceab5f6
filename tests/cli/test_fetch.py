import io
import json
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
from tests.weights_server import Answer, WeightsServer, hashed_name, random_bytes

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

    monkeypatch.setattr("hookviz.cli.fetch.download_bar", lambda _spec: nullcontext(stop))
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
