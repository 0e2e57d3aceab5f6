"""Ask what a page's explorer asks, of a page that Streamlit runs without a browser."""

from collections.abc import Mapping, Sequence
from typing import Any

from streamlit.testing.v1 import AppTest

from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question
from hookviz.explorer.subject import at_once
from hookviz.explorer.view import View
from hookviz.ui.serving import resources
from hookviz.ui.serving.explorer_answers import subject_of
from hookviz.ui.serving.explorer_sessions import explorer_sessions
from tests.ui.pages import link_of


def asked(page: AppTest, name: str, **facts: Any) -> Mapping[str, Any]:
    """The facts with which this page's explorer is answered now."""
    offer = explorer_sessions().of_owner(page.session_state["_session"])
    assert offer is not None, "the page shows no explorer"
    with resources.use_model(offer.scene.choice) as model:
        subject = subject_of(offer.scene, model, at_once)
        return answer(subject, View.of_link(link_of(page)), Question(name, facts)).facts


def words(parts: Sequence[Sequence[str]]) -> str:
    """What a text says, without the sentences that explain its words."""
    return "".join(part for part, _ in parts)
