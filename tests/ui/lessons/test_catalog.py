from pathlib import Path

import pytest

from hookviz.errors import LessonError
from hookviz.ui.lessons.catalog import lessons, read_lessons, words_of

MINE = "---\ntitle: Mine\n---\n# Step\nSome *text*.\n\n```python\nx = 1\n```\n"


def test_ours_come_in_order() -> None:
    ours = lessons()
    assert [lesson.number for lesson in ours] == list(range(1, len(ours) + 1))
    assert [lesson.slug for lesson in ours][:2] == ["image", "convolution"]
    files = [lesson.file.name for lesson in ours]
    assert files == sorted(files)


def test_a_teachers_own_come_after_ours(tmp_path: Path) -> None:
    (tmp_path / "02-second.md").write_text(MINE)
    (tmp_path / "01-first.md").write_text(MINE)
    (tmp_path / "notes.txt").write_text("no lesson")
    found = read_lessons(str(tmp_path))
    assert [lesson.slug for lesson in found] == [
        *(each.slug for each in lessons()),
        "first",
        "second",
    ]
    assert found[-1].number == len(found)


def test_faults_of_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(LessonError, match="no folder"):
        read_lessons(str(tmp_path / "none"))
    with pytest.raises(LessonError, match="has no lesson"):
        read_lessons(str(tmp_path))
    (tmp_path / "01-image.md").write_text(MINE)
    with pytest.raises(LessonError, match=r"a lesson image already, in 01-image\.md"):
        read_lessons(str(tmp_path))
    (tmp_path / "01-image.md").write_text("# no front matter")
    with pytest.raises(LessonError, match=r"01-image\.md, line 1"):
        read_lessons(str(tmp_path))


def test_what_is_translated_is_all_but_code(tmp_path: Path) -> None:
    (tmp_path / "01-mine.md").write_text(MINE)
    *_, mine = read_lessons(str(tmp_path))
    assert [words for words, _ in words_of(mine)] == ["Mine", "", "Step", "Some *text*."]
