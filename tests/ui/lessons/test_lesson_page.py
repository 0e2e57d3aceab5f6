"""A lesson's page as Streamlit runs it; `tests/e2e/test_lessons.py` goes through them."""

from collections.abc import Iterator

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from hookviz.ui.lessons.catalog import lessons
from tests.ui.pages import opened, texts


def answered(name: str, step: int = 1, **query: str) -> AppTest:
    """A step of a lesson, all of whose questions have an answer."""
    lesson = next(each for each in lessons() if each.slug == name)
    return opened(lesson, lesson=name, step=str(step), **query)


def test_what_random_weights_cannot_show_is_dots_and_said() -> None:
    """Nothing untrained can stand beside them, so that part and its numbers are not there."""
    said = "weights are random"
    trained = answered("reading-maps", model="ShapesNet")
    assert said not in texts(trained.get("html"))
    assert not trained.warning
    page = answered("reading-maps", model="ShapesNet", weights="random")
    words = texts(page.get("html"))
    assert said in words
    assert "reading-maps.md" not in words + texts(page.error)
    assert "…" in words
    assert "are random already" in texts(page.warning)


def test_the_lesson_on_attention_opens_with_the_transformer_and_its_weights() -> None:
    page = answered("from-patches-to-attention", 3)
    assert page.selectbox(key="model").value == "ShapesViT (drawings)"
    assert "There are 65 tokens" in texts(page.get("html"))
    assert "What each head of blocks.0.attn weighs" in texts(page.caption)
    chosen = next(each for each in page.segmented_control if each.value == "first")
    chosen.set_value("last").run()
    assert not page.exception
    assert "What each head of blocks.3.attn weighs" in texts(page.caption)
    page = answered("from-patches-to-attention", 3, model="ShapesNet")
    assert "There are 65 tokens" in texts(page.get("html"))
    assert "This lesson runs on ShapesViT" in texts(page.get("html"))


def way_to(page: AppTest, words: str) -> tuple[int, ...]:
    """Where on the page an element with the words stands, from block to block."""

    def ways(block: Block, before: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for at, child in block.children.items():
            if isinstance(child, Block):
                yield from ways(child, (*before, at))
            elif words in str(getattr(child.proto, "body", "")):
                yield (*before, at)

    found = list(ways(page.main, ()))
    assert len(found) == 1
    return found[0]


def test_a_lesson_stands_where_it_stood_whether_or_not_its_numbers_are_computed() -> None:
    """Streamlit mounts anew what an element that comes or goes has moved: keys would be lost."""
    page = answered("reading-maps", model="ShapesNet")
    page.run()  # the numbers are there now
    marks = ('class="hv-step-title"', 'class="hv-blind-row"')
    stood = {words: way_to(page, words) for words in marks}
    page.button(key="reading-maps-1-3 t").click().run()  # and now the text's are computed
    for words, way in stood.items():
        assert way_to(page, words) == way, words
