"""What a lens answers, small: of every lens something that can be shown on a card."""

import io

import pytest
from PIL import Image

import hookviz
from hookviz.capturing import inputs
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.lenses.contract.lens import GROUPS, Lens, Subject
from hookviz.lenses.contract.running import (
    HEIGHT,
    WIDTH,
    answer_of_sample,
    list_lenses,
    small_answer,
)
from tests.every_lens import OF_ANY_NETWORK


@pytest.fixture(scope="module")
def subject() -> Subject:
    image = reading.read(samples()[0].path)
    model = hookviz.load_model("shapesnet")
    return Subject(model, inputs.prepare_input(model, image), image)


@pytest.mark.parametrize("lens", OF_ANY_NETWORK, ids=lambda lens: lens.slug)
def test_every_lens_has_a_small_answer(lens: Lens, subject: Subject) -> None:
    answer = answer_of_sample(lens) if lens.preview.is_dear else small_answer(lens, subject)
    assert bool(answer.of_sample) == lens.preview.is_dear
    if answer.rows:
        assert not answer.picture
        return
    with Image.open(io.BytesIO(answer.picture)) as picture:
        assert picture.width <= WIDTH
        assert picture.height <= HEIGHT
    assert len(answer.picture) < 20_000


def test_lenses_are_listed_by_their_groups_and_one_says_where_a_class_is() -> None:
    groups = [lens.group for lens in list_lenses()]
    assert list(dict.fromkeys(groups)) == list(GROUPS)
    assert groups == sorted(groups, key=GROUPS.index)
    assert [lens.slug for lens in list_lenses() if lens.of_class] == ["grad-cam"]
