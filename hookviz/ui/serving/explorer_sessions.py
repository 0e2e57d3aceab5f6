"""Keep what each session's explorer asks about, by a token that its page alone was given.

A token is good for the browser whose cookie it was offered to, and dies with the session. What a
page run hands over is a `Scene`: its key changes exactly when that does, so that a question about
another scene than the one on the screen is told from the others.
"""

import hashlib
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

from hookviz.explorer.subject import Topic
from hookviz.types import ModelInput
from hookviz.ui.serving.flow_control import TokenBucket
from hookviz.ui.state import ModelChoice

OnAddress = Callable[[object], None]
"""Gets what the browser says of the page's address, which can be anything."""

_BURST, _RATE = 60, 40.0  # questions of a session at once, and a second after them


@dataclass(frozen=True, eq=False, slots=True)
class PinnedScene:
    """What is pinned as A.

    Attributes:
        link: as a view's `pinned` has it.
        image: what its image is called.
        title: of its network, with its weights.
        step: whose output it is, an `ActivationKey` as text.
        choice: its network; None where A can't be had.
        model_digest: of the network.
        model_input: what its network is given, likewise.
        error: why A can't be had, in a person's words.
    """

    link: str
    image: str = ""
    title: str = ""
    step: str = ""
    choice: ModelChoice | None = None
    model_digest: str = ""
    model_input: ModelInput | None = None
    error: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene(Topic):
    """What a page run hands over to the explorer: all that questions are about beside the view.

    No model is in it, which the process may let go of meanwhile.

    Attributes:
        choice: the network.
        model_digest: of the network, since one's own can be another one under the same name.
        pinned: what is pinned as A; None without it.
    """

    choice: ModelChoice
    model_digest: str
    pinned: PinnedScene | None = None

    @cached_property
    def key(self) -> str:
        """Return a text that is another one exactly where a question could be answered otherwise.

        It says nothing of the image to whoever reads it.
        """
        pinned, atlas = self.pinned, self.atlas
        parts = (
            _network(self.choice, self.model_digest),
            *(self.model_input.digest, self.image.digest),
            *(self.alt, self.image_title, self.model_title, self.colours),
            pinned
            and (
                *(pinned.link, pinned.image, pinned.title, pinned.step, pinned.error),
                pinned.choice and _network(pinned.choice, pinned.model_digest),
                pinned.model_input and pinned.model_input.digest,
            ),
            atlas and (str(atlas.path), atlas.digest, len(atlas.images), atlas.counts),
            self.atlas_words,
            sorted(self.image_names.items()),
            ([layer.name for layer in self.offered], self.begins_at),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _network(choice: ModelChoice, digest: str) -> tuple[object, ...]:
    files = (choice.checkpoint, choice.labels)
    return (
        *(choice.spec.family, choice.spec.name, choice.weights, digest),
        *(file and file.file_id for file in files),
        choice.mask and str(choice.mask),
    )


def _ignore(_said: object) -> None:
    """Do nothing with what an address says."""


@dataclass(eq=False, slots=True)
class ExplorerOffer:
    """Session's right to ask.

    Attributes:
        owner: the session.
        cookie: of the browser that may ask.
        token: by which it does.
        scene: what it asks about; replaced as a whole.
        on_address: gets what the page's address says, with each of its questions.
        is_over: whether the session has ended.
        asked: how many of its questions are being answered.
        bucket: bounds how many there are in a time.
    """

    owner: str
    cookie: str
    token: str
    scene: Scene
    on_address: OnAddress
    is_over: bool = False
    asked: int = 0
    bucket: TokenBucket = field(default_factory=lambda: TokenBucket(_BURST, _RATE))


class ExplorerSessions:
    """Registry of a process's sessions; each has one token until it is withdrawn."""

    def __init__(self) -> None:
        """Begin without a session."""
        self._lock = threading.Lock()
        self._by_owner: dict[str, ExplorerOffer] = {}
        self._by_token: dict[str, ExplorerOffer] = {}

    def offer(
        self, owner: str, cookie: str, scene: Scene, on_address: OnAddress = _ignore
    ) -> tuple[str, str]:
        """Return the session's token, the same until it is withdrawn, and the scene's key.

        Args:
            owner: the session, by `hookviz.ui.serving.queue_wait.session`.
            cookie: the visitor's ``_streamlit_xsrf``, which questions have to come with.
            scene: what they are about from now on.
            on_address: gets what the page's address says, with each question and in any thread.
        """
        key = scene.key  # before it can be asked for, and in this thread
        with self._lock:
            offer = self._by_owner.get(owner)
            if offer is None:
                offer = ExplorerOffer(owner, cookie, secrets.token_urlsafe(24), scene, on_address)
                self._by_owner[owner] = self._by_token[offer.token] = offer
            offer.cookie, offer.scene, offer.on_address = cookie, scene, on_address
            return offer.token, key

    def find(self, token: str) -> ExplorerOffer | None:
        """Return whom this token was given to; None where it is nobody's."""
        with self._lock:
            return self._by_token.get(token)

    def of_owner(self, owner: str) -> ExplorerOffer | None:
        """Return what a session may ask; None where its page has offered nothing."""
        with self._lock:
            return self._by_owner.get(owner)

    def withdraw(self, owner: str) -> None:
        """Make the session's token worthless, and end what it asked."""
        with self._lock:
            offer = self._by_owner.pop(owner, None)
            if offer is not None:
                del self._by_token[offer.token]
                offer.is_over = True


@cache
def explorer_sessions() -> ExplorerSessions:
    """Return the sessions of this process."""
    return ExplorerSessions()
