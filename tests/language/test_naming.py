"""What classes are called: by number and name together, and every one of them in Chinese."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookviz.language import catalogs
from hookviz.language.catalogs import CLASS_NAMES
from hookviz.language.naming import class_label, class_name, listed_label
from hookviz.language.speaking import speaking
from hookviz.models.architectures import categories

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'


def printed(code: str, folder: Path | None = None) -> str:
    """What a process of its own prints, since the languages are looked up once in each."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    if folder is not None:
        environment[catalogs.SETTING] = str(folder)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def test_a_class_has_its_name_in_the_language_that_is_spoken() -> None:
    assert class_name(285, "Egyptian cat") == "Egyptian cat"
    with speaking("zh_CN"):
        assert (class_name(0, "circle"), class_name(285, "Egyptian cat")) == ("圆形", "埃及猫")
    with speaking("de"):
        assert class_name(0, "circle") == "circle"
    with speaking("zh_CN"):
        assert class_name(1, "circle") == "circle"
        assert class_name(0, "Circle") == "Circle"
        assert class_name(517, "crane") != "crane"
        assert class_name(134, "crane") == "crane"


def test_a_class_without_a_name_has_its_number_and_a_list_has_both_names() -> None:
    assert class_label(1, ("circle",)) == "class 1"
    with speaking("zh_CN"):
        assert class_label(1, ("circle",)) == "类别 1"
        assert listed_label(1, ("circle",)) == "类别 1"
    assert listed_label(0, ("circle",)) == "circle"
    with speaking("zh_CN"):
        assert listed_label(0, ("circle",)) == "圆形 · circle"
        assert listed_label(0, ("kite",)) == "kite"


def test_english_reads_no_file() -> None:
    said = printed(
        "import sys\nfrom hookviz.language.naming import class_name\n"
        "print(class_name(0, 'circle'), 'babel' in sys.modules)"
    )
    assert said == "circle False\n"


def test_a_folder_of_ones_own_adds_class_names_and_replaces_them(tmp_path: Path) -> None:
    """Class names alone are no language, and a language can do without."""
    (tmp_path / CLASS_NAMES).mkdir()
    for language, name in (("eo", "cirklo"), ("zh_CN", "圈")):
        entry = f'\nmsgctxt "0"\nmsgid "circle"\nmsgstr "{name}"\n'
        (tmp_path / CLASS_NAMES / f"{language}.po").write_text(_HEADER + entry, "utf-8")
    for language in ("eo", "fr"):
        (tmp_path / f"{language}.po").write_text(_HEADER, "utf-8")
    (tmp_path / CLASS_NAMES / "it.po").write_text(_HEADER, "utf-8")
    code = (
        "from hookviz.language.catalogs import languages\n"
        "from hookviz.language.naming import class_name\n"
        "from hookviz.language.speaking import speaking\n"
        "for language in ('eo', 'fr', 'zh_CN', 'en'):\n"
        "    with speaking(language):\n"
        "        print(class_name(0, 'circle'), class_name(1, 'triangle'))\n"
        "print(*(each for each in languages() if each in ('en', 'zh_CN', 'eo', 'fr', 'it')))"
    )
    assert printed(code, tmp_path).splitlines() == [
        "cirklo triangle",
        "circle triangle",
        "圈 triangle",
        "circle triangle",
        "en zh_CN eo fr",
    ]


def test_a_file_names_every_class_of_the_catalog_and_nothing_else() -> None:
    known = {
        (str(index), name)
        for weights in ("shapesnet", "shapesvit", "squeezenet", "resnet18")
        for index, name in enumerate(categories(weights))
    }
    assert len(known) == 1020
    messages = [each for each in catalogs.read("zh_CN", CLASS_NAMES) or () if each.id]
    assert {(each.context, each.id) for each in messages} == known
    assert [each.id for each in messages if not _CHINESE.search(str(each.string))] == []


@pytest.mark.parametrize("weights", ["shapesnet", "squeezenet"])
def test_no_two_classes_have_one_name(weights: str) -> None:
    with speaking("zh_CN"):
        said = [class_name(index, name) for index, name in enumerate(categories(weights))]
    assert [name for name in said if said.count(name) > 1] == []
