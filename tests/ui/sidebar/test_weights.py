import io
from typing import Any

import torch
from streamlit.testing.v1 import AppTest

from hookviz.models import loading
from tests.ui.pages import give, opened, texts
from tests.ui.questions import asked

REFUSED, UNTIL_THEN = "refused: this is still with", "Shown until then: ShapesNet with"


def said(page: AppTest) -> tuple[str, str]:
    """In small text at the side, and above the channels."""
    return texts(page.sidebar.caption), texts(page.main.markdown)


def numbers(page: AppTest) -> Any:
    """Of the channels that are shown, by which one network is told from another."""
    return asked(page, "tiles")["stats"]


def test_weights_are_said_at_the_side_and_at_the_channels_with_what_is_shown() -> None:
    network = loading.load_model("shapesnet", "random").network
    mine = io.BytesIO()  # weights of another scale than any that come with the network
    torch.save({name: 0.5 * value for name, value in network.state_dict().items()}, mine)
    page = opened(model="ShapesNet", weights="random")
    page.query_params["weights"] = "yours"
    page.run()
    random = numbers(page)
    give(page, "broken.pth", b"no checkpoint at all")
    assert "broken.pth" in texts(page.sidebar.error)
    at_side, at_channels = said(page)
    assert f"{UNTIL_THEN} random weights." in at_side
    assert f"{REFUSED} random weights" in at_channels
    assert numbers(page) == random
    give(page, "mine.pth", mine.getvalue())
    at_side, at_channels = said(page)
    count = len(network.state_dict())
    assert f"All {count} tensors of ShapesNet were loaded from mine.pth." in at_side
    assert not page.sidebar.error
    assert UNTIL_THEN not in at_side
    assert REFUSED not in at_channels
    shown = numbers(page)
    assert shown != random
    give(page, "broken.pth", b"no checkpoint at all")
    at_side, at_channels = said(page)
    assert f"{UNTIL_THEN} your last weights." in at_side
    assert f"{REFUSED} your last weights" in at_channels
    assert "tensors of ShapesNet" not in at_side
    assert numbers(page) == shown
    page.query_params["weights"] = "random"  # what was refused is said of one's own alone
    page.run()
    assert REFUSED not in said(page)[1]
    assert numbers(page) == random
