"""Ask a page in node what a browser would ask it, and read its blocks."""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hookviz.explorer.client_files import DARK, LIGHT
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import ALL_OF_IT, View
from hookviz.standalone.client_page import CLIENT
from hookviz.standalone.recording import record_layers, record_page, record_whole
from tests.node import run_node

LANGUAGES = ("en", "zh_CN")
THEMES = (LIGHT, DARK)

_ASK = """
import { readFileSync } from "node:fs";
globalThis.window = {};
const { answering } = await import(CLIENT + "answers.js");
const { blocksOf, bytesOf } = await import(CLIENT + "blocks.js");
const [kept, questions] = JSON.parse(readFileSync(FILE, "utf-8"));
const blocks = blocksOf(async (name) => kept[name] ?? null);
const page = await blocks.facts("page");
const ask = answering(page, blocks, bytesOf);
const answers = [];
for (const [question, view, language, theme] of questions) {
  const { words, point } = page.languages[language];
  [window.hookvizWords, window.hookvizPoint] = [words, point];
  const options = { view, subject: `${language} ${theme}`, on() {} };
  try {
    const { facts, data } = await ask(question, options);
    answers.push([facts, Buffer.from(data).toString("base64")]);
  } catch (error) {
    answers.push([{ error: error.message }, ""]);
  }
}
console.log(JSON.stringify(answers));
"""


@dataclass(frozen=True)
class Asked:
    """What a page is asked, of which layer, in a language and a theme by their numbers."""

    question: str
    about: Mapping[str, Any]
    layer: str | None = None
    language: int = 0
    theme: int = 0


@dataclass(frozen=True)
class Recorded:
    """A page's blocks, which are asked in node."""

    blocks: Mapping[str, str]
    folder: Path

    def answers(self, asked: Sequence[Asked]) -> list[tuple[dict[str, Any], bytes]]:
        """What the page answers, its facts and its file."""
        questions = [
            (
                {"name": each.question, **each.about},
                {} if each.layer is None else {"layer": each.layer},
                each.language,
                each.theme,
            )
            for each in asked
        ]
        file = self.folder / "asked.json"
        file.write_text(json.dumps([self.blocks, questions]), "utf-8")
        where = f"const [CLIENT, FILE] = {json.dumps([CLIENT.as_uri() + '/', str(file)])};\n"
        found = json.loads(run_node(where + _ASK))
        return [(facts, base64.b64decode(data)) for facts, data in found]

    def facts(self, question: str, layer: str | None = None, **about: Any) -> dict[str, Any]:
        """The facts of one answer, in English and light."""
        return self.answers([Asked(question, about, layer)])[0][0]


def recorded(
    subject: Subject,
    layers: Sequence[str],
    folder: Path,
    sums: Sequence[str] = (),
    *,
    has_map: bool = False,
) -> Recorded:
    """A page of some layers, and of the whole network if it has a map."""
    trace = subject.trace
    listed = trace.convs if {*layers} <= {each.name for each in trace.convs} else trace.maps
    shown = [each for each in listed if each.name in layers]
    subject = replace(subject, offered=shown, colours=LIGHT)
    blocks = record_page(subject, shown, View(inside=ALL_OF_IT if has_map else None))
    if has_map:
        blocks |= record_whole(subject, layers)
    for each in record_layers(subject, shown, sums):
        blocks |= each.texts
    return Recorded(blocks, folder)


def unpacked(text: str) -> Any:
    """The facts of a block."""
    return json.loads(zlib.decompress(base64.b64decode(text)))
