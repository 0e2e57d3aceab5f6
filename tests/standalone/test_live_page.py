"""A live page answers as the library does, and says what it can't be made of."""

import base64
import builtins
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hookviz
from hookviz.errors import HookVizError, ModelError, SettingError, UnknownLayerError
from hookviz.explorer.answering import answer
from hookviz.explorer.client_files import DARK, LIGHT
from hookviz.explorer.question import Question
from hookviz.explorer.subject import make_subject
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.language.speaking import speaking
from hookviz.standalone.client_page import CLIENT
from hookviz.standalone.live_page import save_live_page
from hookviz.types import ActivationKey
from tests.networks import Tiny, seeded
from tests.node import run_node
from tests.standalone.test_onnx_network import Shared, wrapped

PHOTO = next(each.path for each in samples() if each.kind == "photo")
LANGUAGES = ("en", "zh_CN")


def test_what_no_page_can_be_made_of_is_said(tmp_path: Path) -> None:
    model = wrapped(Tiny)
    with pytest.raises(UnknownLayerError, match="conv1"):
        save_live_page(model, tmp_path / "net.html", samples=PHOTO, layers="conv")
    with pytest.raises(SettingError, match="html"):
        save_live_page(model, tmp_path / "net.pdf", samples=PHOTO)
    with pytest.raises(HookVizError, match="most-bytes"):
        save_live_page(model, tmp_path / "net.html", samples=PHOTO, most_bytes=1000)
    own = hookviz.wrap(seeded(Tiny), lambda image: torch.zeros(3, 64, 64), output="logits")
    with pytest.raises(ModelError, match="an input of its own"):
        save_live_page(own, tmp_path / "net.html", samples=PHOTO)
    assert not list(tmp_path.iterdir())


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError(name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(HookVizError, match=r"needs onnxruntime.*hookviz\[live\]"):
        save_live_page(wrapped(Tiny), tmp_path / "net.html", samples=PHOTO)


_ASK = """
import { readFileSync } from "node:fs";
globalThis.window = {};
const { liveAnswers } = await import(CLIENT + "live_answers.js");
const { blocksOf, bytesOf } = await import(CLIENT + "blocks.js");
const { blocks: texts, outputs, picture, questions } = JSON.parse(readFileSync(FILE, "utf-8"));
const blocks = blocksOf(async (name) => texts[name] ?? null);
const page = await blocks.facts("page");
const floats = (text) => new Float32Array(bytesOf(text).buffer);
const network = {
  weights: await blocks.unpacked("weights"),
  output: async (image, name) => ({ ...outputs[name], values: floats(outputs[name].values) }),
};
const empty = new Uint8Array(0);
const pictureOf = () => ({ ...picture, photograph: empty, input: empty });
const ask = liveAnswers(page, blocks, network, { bytesOf, pictureOf });
const answers = [];
for (const [question, view, language, theme] of questions) {
  const { words, point } = page.languages[language];
  [window.hookvizWords, window.hookvizPoint] = [words, point];
  const { facts } = await ask(question, { view, subject: `${language} ${theme} 1`, on() {} });
  answers.push(facts);
}
console.log(JSON.stringify(answers));
"""


def _blocks(file: Path) -> dict[str, str]:
    """The blocks of a page by their names."""
    parts = file.read_text("utf-8").split('<script type="application/octet-stream" id="')[1:]
    named = (part.partition('">') for part in parts)
    return {name: text.partition("<")[0] for name, _, text in named}


def _near(one: Any, other: Any, where: str = "") -> None:
    """Both are the same, numbers to 1e-5 of their size: float32 sums in another order."""
    if isinstance(other, dict):
        for key in other:
            _near(one[key], other[key], f"{where}.{key}")
    elif isinstance(other, list | tuple):
        assert len(one) == len(other), where
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            _near(a, b, f"{where}[{at}]")
    elif isinstance(other, float):
        assert one == pytest.approx(other, rel=1e-5, abs=1e-6), where
    else:
        assert one == other, where


_LEFT_OUT = {
    "tiles": {"key", "palette", "bar", "cost", "alt", "legend", "isOfA", "picksStrongest"},
    "channel": {"picture", "bar", "values"},
    "layers": {"listed", "options", "steps", "patches", "hasUsual", "hasBlocks", "tops"},
    "cell": {"hasKernel", "canWalk"},
}
"""What a page has in another form, or not at all."""


@pytest.mark.parametrize("name", ["shapesnet", "Shared"])
def test_a_page_answers_as_the_library_does(name: str, tmp_path: Path) -> None:
    """Given the values that PyTorch computes, each answer is Python's, in each language."""
    model = wrapped(Shared) if name == "Shared" else hookviz.load_model(name)
    file = save_live_page(model, tmp_path / "net.html", samples=PHOTO)
    blocks = _blocks(file)
    page = json.loads(zlib.decompress(base64.b64decode(blocks["page"])))
    subject = make_subject(model, PHOTO)
    names = page["names"]
    of_steps = {each["address"]: each["output"] for steps in page["steps"] for each in steps}
    layers = list(dict.fromkeys(ActivationKey.read(each).layer for each in of_steps))
    capture = hookviz.capture(model, PHOTO, layers, inputs=True)
    arrays = {output: capture[address].values.numpy() for address, output in of_steps.items()}
    for at, call in enumerate(page["calls"]):
        if "taken" in call:
            arrays[call["taken"]] = capture.inputs(names[at])[0].values.numpy()
    of_words = {
        (layer, each["word"] if place else None): each["output"]
        for layer, steps in zip(names, page["steps"], strict=True)
        for place, each in enumerate(steps)
    }
    assert capture.answer is not None
    arrays["scores"] = capture.answer.scores.numpy()
    asked: list[tuple[Question, View, int, int]] = []
    for at, layer in enumerate(names):
        for word in [None, *(each["word"] for each in page["steps"][at][1:])]:
            field = "output" if (word or "").startswith("call ") else "after"
            view = View(layer=layer, **{field: word}) if word else View(layer=layer)
            language, theme = at % 2, at // 2 % 2
            shape = arrays[of_words[layer, word]].shape
            about = {"channel": 1, "row": min(2, shape[1] - 1), "column": min(1, shape[2] - 1)}
            asked += [
                (Question("tiles", {}), view, language, theme),
                (Question("field", {}), view, language, theme),
                (Question("channel", {"channel": 1}), view, language, theme),
                (Question("cell", about), view, language, theme),
                (Question("layers", {}), view, language, theme),
            ]
    first = View(layer=names[0])
    asked += [
        (Question("tiles", {}), View(layer=names[0], scale=scale, colours="viridis"), 0, 0)
        for scale in ("layer", "channel", "symmetric", "percentile")
    ]
    asked += [(Question("head", {}), first, 1, 0), (Question("photograph", {}), first, 0, 0)]
    assert len(asked) >= (50 if name == "shapesnet" else 15)
    crop = subject.model_input.crop
    assert crop is not None
    height, width = subject.image.height, subject.image.width
    picture = {"id": "1", "title": PHOTO.name, "alt": PHOTO.name, "height": height, "width": width}
    sent = {
        "blocks": {key: text for key, text in blocks.items() if key not in ("wasm", "engine")},
        "outputs": {
            key: {
                "values": base64.b64encode(np.ascontiguousarray(each, "<f4").tobytes()).decode(),
                "shape": list(each.shape),
            }
            for key, each in arrays.items()
        },
        "picture": picture | {"crop": {side: getattr(crop, side) for side in _SIDES}},
        "questions": [
            ({"name": each.name, **each.facts}, view.link(), language, theme)
            for each, view, language, theme in asked
        ],
    }
    questions = tmp_path / "asked.json"
    questions.write_text(json.dumps(sent), "utf-8")
    where = f"const [CLIENT, FILE] = {json.dumps([CLIENT.as_uri() + '/', str(questions)])};\n"
    answers = json.loads(run_node(where + _ASK))
    for (question, view, language, theme), facts in zip(asked, answers, strict=True):
        with speaking(LANGUAGES[language]):
            of_theme = make_subject(model, PHOTO)
            object.__setattr__(of_theme, "colours", (LIGHT, DARK)[theme])
            expected = dict(answer(of_theme, view, question).facts)
        for key in _LEFT_OUT.get(question.name, ()):
            expected.pop(key, None)
        if question.name == "cell" and "info" in facts:
            expected = {"info": facts["info"]} if "info" not in expected else expected
        if question.name == "photograph":
            expected = {key: expected[key] for key in ("crop", "missing")}
        _near(facts, expected, f"{question.name} {view.layer} {view.after} {view.output}")


_SIDES = ("top", "left", "bottom", "right")
