import pytest

from hookviz.atlas.files import atlas_of
from hookviz.lessons.part import LessonScene
from hookviz.ui.lessons.parts.name_channel import GUESSES, PART, guesses_of, rounds_of, score
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


@pytest.mark.parametrize("scene", [cat(), star()], ids=["squeezenet", "shapesnet"])
def test_the_right_name_is_that_of_most_images_and_the_others_of_none(scene: LessonScene) -> None:
    atlas = atlas_of(scene.model)
    assert atlas is not None
    found = rounds_of(scene)
    assert len(found) == 6
    for each in found:
        top = atlas.top_activations(each.layer, each.channel)
        categories = [one.image.category for one in top]
        assert len(set(each.names)) == 4
        assert categories.count(each.names[each.right]) == each.agree > len(top) / 2
        assert len(top) == each.among
        assert set(categories) & set(each.names) == {each.names[each.right]}
    assert rounds_of(scene) == found


def test_a_guess_is_a_place_or_the_name_in_any_letters() -> None:
    found = rounds_of(cat())
    first = found[0]
    assert first.is_right(str(first.right))
    assert first.is_right(first.names[first.right].upper())
    assert not first.is_right(str((first.right + 1) % 4))
    assert not first.is_right("wheel")
    guesses = guesses_of(f"0={first.right};1=a wheel;x=2;77=1;2=", found)
    assert guesses == {0: str(first.right), 1: "a wheel"}
    assert score(guesses, found) == 1
    facts = PART.facts(cat(), {**with_defaults(PART), GUESSES: f"0={first.right};1=a wheel"})
    assert facts["so_far"] == "1 of 2 guesses are right so far."
