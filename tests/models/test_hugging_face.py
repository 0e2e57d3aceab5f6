import sys
from pathlib import Path

import pytest
import torch

import hookviz
from hookviz.models import hugging_face
from hookviz.weights_digest import weights_digest
from tests.other_libraries import library
from tests.pictures import picture
from tests.repositories import LABELS, cached, clip, save, vit

LAYER = "vit.layers.0.attention"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(vit(), tmp_path / "vit")


def test_a_folder_gives_the_network_its_labels_and_its_input(folder: Path) -> None:
    model = hookviz.load_model(f"hf:{folder}")
    network = vit()
    assert weights_digest(model.network) == weights_digest(network)
    assert (model.name, model.categories) == ("vit", LABELS)
    processor = library("transformers").AutoImageProcessor.from_pretrained(folder)
    values = processor(images=picture(), return_tensors="pt")["pixel_values"]
    cap = hookviz.capture(model, picture(), ["classifier"])
    assert torch.equal(cap.input, values)
    with torch.no_grad():
        assert torch.equal(cap["classifier"].values, network(values).logits[0])


def test_random_weights_are_others_and_the_same_every_time(folder: Path) -> None:
    models = [hookviz.load_model(f"hf:{folder}", "random") for _ in range(2)]
    assert {model.weights for model in models} == {"random"}
    assert models[0].digest == models[1].digest != hookviz.load_model(f"hf:{folder}").digest
    half = hookviz.load_model(f"hf:{save(vit().half(), folder.parent / 'half')}")
    assert {parameter.dtype for parameter in half.network.parameters()} == {torch.float32}


def test_labels_and_precision_are_those_asked_for(folder: Path) -> None:
    model = hookviz.load_model(f"hf:{folder}", labels=["a", "b", "c"])
    assert model.categories == ("a", "b", "c")
    with pytest.raises(hookviz.WeightsError, match="2 labels, and the network has 3 classes"):
        hookviz.load_model(f"hf:{folder}", labels=["a", "b"])
    with pytest.raises(hookviz.WeightsError, match="neither 'pretrained' nor 'random'"):
        hookviz.load_model(f"hf:{folder}", folder / "model.safetensors")


def test_of_clip_the_tower_for_images_is_loaded(tmp_path: Path) -> None:
    folder = save(clip(), tmp_path, "CLIPImageProcessor")
    for weights in ("pretrained", "random"):
        model = hookviz.load_model(f"hf:{folder}", weights)
        assert type(model.network).__name__ == "CLIPVisionModel"
        assert hookviz.capture(model, picture()).input.shape[1] == 3


@pytest.mark.by_day
def test_what_cant_be_had_is_told_in_words(folder: Path) -> None:
    for name in ("hf:", f"hf:{folder}/none", "hf:~/there is none"):
        with pytest.raises(hookviz.ModelError, match="hf:google/vit-base-patch16-224"):
            hookviz.load_model(name)
    with pytest.raises(hookviz.WeightsError, match=r"couldn't connect|not a valid model"):
        hookviz.load_model("hf:nobody/there-is-no-such-repository")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(hookviz.WeightsError, match=r"no file named model\.safetensors"):
        hookviz.load_model(f"hf:{folder}")
    (folder / "config.json").write_text("{}")
    with pytest.raises(hookviz.WeightsError, match="config"):
        hookviz.load_model(f"hf:{folder}")


def test_code_of_a_repository_is_not_run(folder: Path) -> None:
    library("transformers")
    config = (folder / "config.json").read_text()
    remote = '{"auto_map": {"AutoConfig": "evil.Config"}, '
    (folder / "config.json").write_text(config.replace("{", remote, 1).replace('"vit"', '"evil"'))
    (folder / "evil.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(hookviz.WeightsError, match="can't be loaded by transformers"):
        hookviz.load_model(f"hf:{folder}")


def test_a_cache_lists_its_networks_of_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = cached(vit(), "somebody/small-vit", tmp_path, monkeypatch)
    (spec,) = hugging_face.cached_models()
    assert (spec.name, spec.family, spec.on_disk) == ("hf:somebody/small-vit", "Hugging Face", True)
    assert spec.parameters == sum(part.numel() for part in vit().parameters())
    assert hookviz.load_model(spec.name).categories == LABELS
    for needed in ("model.safetensors", "preprocessor_config.json", "config.json"):
        hugging_face._spec.cache_clear()
        (snapshot / needed).rename(snapshot / "aside")
        assert hugging_face.cached_models() == ()
        (snapshot / "aside").rename(snapshot / needed)
    monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
    with pytest.raises(hookviz.ModelError, match=r"not installed: pip install 'hookviz\[hf\]'"):
        hookviz.load_model("hf:google/vit-base-patch16-224")
    assert hugging_face.cached_models() == ()
