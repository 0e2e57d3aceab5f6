import json
from pathlib import Path

import pytest

from hookviz.explorer.client_files import (
    CLIENT,
    bundle,
    client_fields,
    client_sheets,
    client_words,
    colour_variables,
    sheet,
)
from hookviz.explorer.view import View, choices
from tests.node import run_node


def test_modules_of_two_folders_keep_their_names_to_themselves(tmp_path: Path) -> None:
    """Each has a FRAME of its own, one is imported twice, and runs once all the same."""
    (one := tmp_path / "one").mkdir()
    (two := tmp_path / "two").mkdir()
    (two / "shared.js").write_text(
        "// Shared.\nconst FRAME = 1;\n"
        + "globalThis.runs = (globalThis.runs ?? 0) + 1;\n"
        + "export const twice = (x) => 2 * x + FRAME;\nexport class Kept {}\n"
    )
    (one / "shared.js").write_text(
        'import { Kept, twice as double } from "../two/shared.js";\n\n'
        "const FRAME = 10;\n"
        "export async function later() {\n  return new Kept() && double(FRAME);\n}\n"
    )
    (one / "main.js").write_text(
        'import {\n  later,\n} from "./shared.js";\nimport { twice } from "../two/shared.js";\n'
        "const FRAME = 100;\n"
        "export default function () {\n  return later().then((x) => x + twice(FRAME));\n}\n"
    )
    script = bundle(one / "main.js", two / "shared.js")
    ran = run_node(
        script + "one_main.main().then((x) => console.log(JSON.stringify([x, globalThis.runs])));"
    )
    assert json.loads(ran) == [21 + 201, 1]


def test_comments_stay_in_the_files_and_what_stands_beside_them_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        "// A line.\n/**\n * Types.\n * @param {number} x\n */\nexport const a = (x) =>\n"
        '  /** @type {any} */ (x) + "// no comment"; // beside code\n  // indented\n'
        "/** one */\nconst b = `\n  http://x`;\n"
    )
    text = bundle(tmp_path / "a.js")
    assert "A line" not in text
    assert "Types" not in text
    assert "indented" not in text
    assert '(x) + "// no comment"' in text
    assert "http://x" in text
    (tmp_path / "a.js").write_text("export let count = 0;\n")
    with pytest.raises(AssertionError, match=r"a\.js can't be bundled"):
        bundle(tmp_path / "a.js")


def test_the_client_knows_each_choice_by_its_word() -> None:
    declared = {each["word"]: each for each in client_fields()}
    assert list(declared) == [choice.word for choice in choices().values()]
    assert declared["sort"]["default"] == "index"
    assert "mean" in declared["sort"]["values"]
    assert declared["channel"] == {
        "word": "channel",
        "default": None,
        "values": None,
        "isPage": False,
    }
    assert [word for word, each in declared.items() if each["isPage"]][:2] == ["family", "model"]


def test_what_the_client_may_write_is_what_the_view_reads() -> None:
    """A value that the client takes for a choice and the server does not would be shown as none."""
    for each in client_fields():
        for value in each["values"] or ():
            link = View.of_link({each["word"]: value}).link()
            assert link == ({} if value == each["default"] else {each["word"]: value}), each


def test_words_are_those_that_the_folder_s_scripts_say() -> None:
    everything = client_words("zh_CN")
    client = client_words("zh_CN", "hookviz/explorer/client/")
    assert (client["language"], client["point"]) == ("zh-CN", ".")
    assert 0 < len(client["words"]) < len(everything["words"])
    assert client["words"]["Layers"] == everything["words"]["Layers"]
    assert client_words("en")["words"] == {}
    variables = colour_variables()  # a palette is one, with its ends beside it
    levels = variables["--hv-RdBu_r"].split()
    assert {variables[f"--hv-RdBu_r-{end}"] for end in ("below", "above")} <= {*levels}


def test_a_sheet_has_those_that_it_imports_in_their_place_and_the_tree_one_of_its_own() -> None:
    text = sheet(CLIENT / "alone.css")
    assert text.index(".layer-row") < text.index(".seen-head")
    sheets = client_sheets()
    assert sorted(sheets) == ["alone", "tree"]
    assert "@import" not in text.join(sheets.values())
