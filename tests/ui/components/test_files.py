import json
from pathlib import Path

import pytest

from hookviz.language.speaking import speaking
from hookviz.ui.components import files
from hookviz.ui.components.files import bundle, packed, script
from scripts.visitor import unpacked
from tests.node import run_node


def test_facts_and_picture_come_out_as_they_went_in() -> None:
    data = packed({"label": "通道 5", "order": [3, 1]}, b"\x89PNG")
    facts, picture = unpacked(data)
    assert (facts["label"], facts["order"], picture) == ("通道 5", [3, 1], b"\x89PNG")


def test_another_language_is_other_data_and_a_component_s_own_facts_stand() -> None:
    """A browser refuses ``zh_CN`` where it formats numbers; a class says ``zh-CN`` itself."""
    english = packed({"label": "x"})
    with speaking("zh_CN"):
        assert packed({"label": "x"}) != english
        assert unpacked(packed({"language": "zh-CN"}))[0]["language"] == "zh-CN"


def test_a_script_waits_for_the_head_of_the_page() -> None:
    assert script("gallery.js").count("export default") == 1
    end = "export default components_page.afterHead(components_gallery.main);"
    assert script("gallery.js").rstrip().endswith(end)


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


def test_a_module_that_can_t_be_bundled_is_a_bug(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text("export let count = 0;\n")
    with pytest.raises(AssertionError, match=r"a\.js can't be bundled"):
        bundle(tmp_path / "a.js")


@pytest.mark.parametrize("name", [f.name for f in sorted(Path(files.__file__).parent.glob("*.js"))])
def test_every_component_is_one_script_that_runs(name: str) -> None:
    """Modules run through once where they are loaded, each after those that it imports."""
    text = (
        script(name) if "export default" in _file(name).read_text("utf-8") else bundle(_file(name))
    )
    run_node(
        "globalThis.window = globalThis;\nglobalThis.document = { documentElement: {} };\n" + text
    )


def _file(name: str) -> Path:
    return Path(files.__file__).parent / name
