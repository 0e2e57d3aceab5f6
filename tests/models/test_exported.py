from pathlib import Path

import pytest
import torch

import hookviz
from hookviz.models import user_models
from tests.cli.command import mistake, output_of
from tests.networks import Tiny, random_input, seeded


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt2"
    network = seeded(Tiny).eval()
    torch.export.save(torch.export.export(network, (random_input(0),)), path)
    return path


def test_an_exported_program_has_its_layers_and_its_values(file: Path) -> None:
    model = user_models.build(str(file))
    plain = hookviz.wrap(seeded(Tiny), hookviz.Preprocess(resize=16, crop=16))
    assert (model.name, model.preprocess) == ("net", plain.preprocess)
    for kind in ("conv", "all"):
        listed, expected = (hookviz.list_layers(each, kind=kind) for each in (model, plain))
        assert [layer.name for layer in listed] == [layer.name for layer in expected]
        assert [layer.output_shape for layer in listed] == [
            layer.output_shape for layer in expected
        ]
    one, other = (hookviz.capture(each, random_input(3)) for each in (model, plain))
    assert all(torch.equal(one[name].values, other[name].values) for name in other)
    assert one.logits is not None
    assert other.logits is not None
    assert torch.equal(one.logits, other.logits)
    for lens in ("verify", "grad-cam", "health", "kernels"):
        assert hookviz.run_lens(lens, model, random_input(3)).panels
    assert "conv1" in output_of("layers", file)  # the shell takes it too


def test_other_files_are_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "net.pt2"
    damaged.write_bytes(b"nothing of the kind")
    script = tmp_path / "net.ts"
    script.write_bytes(b"whatever it holds")
    for path, reason in (
        (damaged, "net.pt2 is no program of torch.export"),
        (script, "net.ts is TorchScript.*torch.export.save"),
        (tmp_path / "none.pt2", "There is no file .*none.pt2"),
    ):
        with pytest.raises(hookviz.ModelError, match=reason):
            user_models.build(str(path))
    assert "There is no file" in mistake("run", "--model", tmp_path / "none.pt2")


pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is about to go
