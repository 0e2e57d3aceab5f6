"""Play a camera or a video as a stream of frames, and draw what one layer makes of each."""

from collections.abc import Callable, Mapping
from typing import Any

from hookviz.ui.components.files import mount


def live(
    stream: Mapping[str, Any],
    on_pick: Callable[[int | None], None],
    on_freeze: Callable[[Any], None],
    on_layer: Callable[[str], None],
    *,
    key: str = "live",
) -> None:
    """Play the stream: the photograph, its classes, every channel, and the one picked up.

    Args:
        stream: where frames go (``path``, ``token``), the pixels of their shorter side (``side``),
            the pixels to ask a camera for (``cameraWidth``), the most bytes of a frame that is kept
            (``mostBytes``), the share of it that the network sees (``seen``), what is drawn of them
            in a word that changes with it (``subject``), and one that changes with the channels'
            values alone (``levels``), the step's name (``layer``), the layers that can be chosen
            (``layers``) and the one that is (``at``), whether the weights are random, and whether
            the page teaches a class (``teaches``).
        on_pick: gets the channel that a person picks up, None where it is put down.
        on_layer: gets the name of the layer that a person chooses.
        on_freeze: gets a frame as the browser hands it over, which is anything.
        key: of the component in Streamlit's state.
    """

    def picked(sent: object) -> None:
        match sent:
            case {"channel": int(channel)}:
                on_pick(channel)
            case {"channel": None}:
                on_pick(None)

    def chosen(sent: object) -> None:
        if isinstance(sent, str):
            on_layer(sent)

    def run_again(_sent: object) -> None:
        """Do nothing more: the page runs, and offers the stream anew."""

    mount("live", key, stream, picked=picked, layer=chosen, frozen=on_freeze, again=run_again)
