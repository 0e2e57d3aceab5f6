from pathlib import Path

import pytest

from hookviz.errors import LessonError
from hookviz.ui.lessons.catalog import lessons, read_lessons, words_of

MINE = "---\ntitle: Mine\n---\n# Step\nSome *text*.\n\n```python\nx = 1\n```\n"


def test_a_teachers_own_come_after_ours_each_in_order(tmp_path: Path) -> None:
    for name in ("02-second.md", "01-first.md", "notes.txt"):
        (tmp_path / name).write_text(MINE)
    found = read_lessons(str(tmp_path))
    assert [lesson.slug for lesson in found] == [
        *(each.slug for each in lessons()),
        "first",
        "second",
    ]
    assert [lesson.number for lesson in found] == list(range(1, len(found) + 1))
    assert [lesson.slug for lesson in found][:2] == ["image", "convolution"]
    files = [lesson.file.name for lesson in lessons()]
    assert files == sorted(files)
    assert [words for words, _ in words_of(found[-1])] == ["Mine", "", "Step", "Some *text*."]


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
