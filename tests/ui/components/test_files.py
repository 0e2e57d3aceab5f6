from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st

from hookviz.explorer.client_files import bundle
from hookviz.language.speaking import speaking
from hookviz.ui.components import files
from hookviz.ui.components.files import packed, script
from scripts.visitor import unpacked
from tests.node import run_node


def test_facts_and_picture_come_out_as_they_went_in_with_the_language() -> None:
    """A browser refuses ``zh_CN`` where it formats numbers; a class says ``zh-CN`` itself."""
    sent = {"label": "通道 5", "order": [3, 1]}
    data = packed(sent, b"\x89PNG")
    facts, picture = unpacked(data)
    assert (facts["label"], facts["order"], picture) == ("通道 5", [3, 1], b"\x89PNG")
    with speaking("zh_CN"):
        assert packed(sent, b"\x89PNG") != data
        assert unpacked(packed({"language": "zh-CN"}))[0]["language"] == "zh-CN"


@pytest.mark.parametrize("name", [f.name for f in sorted(Path(files.__file__).parent.glob("*.js"))])
def test_every_component_is_one_script_that_runs(name: str) -> None:
    """Modules run through once where they are loaded, each after those that it imports."""
    file = Path(files.__file__).parent / name
    text = script(name) if "export default" in file.read_text("utf-8") else bundle(file)
    if name == "gallery.js":
        assert text.count("export default") == 1
        end = "export default components_page.afterHead(components_gallery.main);"
        assert text.rstrip().endswith(end)
    run_node(
        "globalThis.window = globalThis;\nglobalThis.document = { documentElement: {} };\n" + text
    )


def test_what_comes_of_a_component_that_has_gone_is_not_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict[str, Callable[[], None]] = {}
    monkeypatch.setattr(files, "component", lambda *_, **__: lambda **given: made.update(given))
    heard: list[object] = []
    files.mount("teacher", "hv-teacher", {}, over=heard.append)
    gone: list[dict[str, object]] = [{}, {"hv-teacher": {}}, {"hv-teacher": {"over": None}}]
    for state in gone:
        monkeypatch.setattr(st, "session_state", state)
        made["on_over_change"]()
    assert heard == []
    monkeypatch.setattr(st, "session_state", {"hv-teacher": {"over": "ended"}})
    made["on_over_change"]()
    assert heard == ["ended"]
