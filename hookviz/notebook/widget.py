"""Show the explorer as a widget of the kernel's, whose view the next cell can read and change.

`client_script` and `client_start` build the widget's client: one script, its style sheets, and the
state that it starts with. `SavedPicture` puts a picture above the live widget, which the notebook's
file keeps. It is drawn again once a person has looked at a layer for a moment.
"""

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from threading import RLock
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from torch import Tensor, nn

from hookviz.capturing import engine
from hookviz.drawing.grid_page import grid_sheet
from hookviz.errors import HookVizError, ModelError, UnknownLayerError
from hookviz.explorer.client_files import (
    LIGHT,
    bundle,
    client_fields,
    client_sheets,
    client_words,
    colour_variables,
    scope,
)
from hookviz.explorer.layers import ResolvedView, maps, resolve
from hookviz.explorer.question import asked_cell, asked_number
from hookviz.explorer.rendering import render
from hookviz.explorer.subject import Subject, make_subject
from hookviz.explorer.view import Cell, View
from hookviz.language.saying import say
from hookviz.language.speaking import current, speaking
from hookviz.models.derived_models import copied
from hookviz.models.wrapping import wrap
from hookviz.notebook.answers import (
    CommTransport,
    PendingQuestion,
    ViewTrait,
    as_view,
    from_client,
    subject_key,
    to_client,
)
from hookviz.notebook.kernel import between_cells, put_out
from hookviz.types import Capture, InputImage, Model, ModelInput

_HEIGHT = 640  # pixels: a laptop's screen has room for it below the cell
_PICTURE_DELAY_S = 0.5

_FOLDER = Path(__file__).parent
_FOLDERS = ("hookviz/notebook/", "hookviz/explorer/")  # whose sentences it says
_SCRIPT = _FOLDER / "widget.js"

# A saved notebook keeps a picture before the widget, for readers without the widget. A live widget
# hides it, in JupyterLab and Notebook 7, whose elements these are.
_PAGE_SHEET = (
    ".jp-OutputArea-child:has(+ .jp-OutputArea-child .hookviz-explorer) { display: none; }\n"
    ".hookviz-explorer { overflow: auto; resize: vertical; }\n"
    ".hookviz-notice { position: sticky; top: 0; z-index: 1001; margin: 0; padding: 0.6rem 1rem; "
    "color: #262730; background: #f7e5b0; }\n"
)


@cache
def client_script() -> str:
    """Return the client as one JavaScript module, in the form that anywidget loads."""
    return f"{bundle(_SCRIPT)}\nexport default {{ render: {scope(_SCRIPT)}.main }};\n"


def client_start(language: str, height: int) -> Mapping[str, Any]:
    """Return the words, style sheets, fields and height in pixels that the client starts with."""
    own, explorers = (client_words(language, folder) for folder in _FOLDERS)
    return {
        "fields": client_fields(),
        "language": {**own, "words": {**explorers["words"], **own["words"]}},
        "sheets": {**client_sheets(), "alone": _sheet(height)},
        "height": height,
    }


def _sheet(height: int) -> str:
    variables = {**colour_variables(), "--hv-window": f"{height}px"}
    host = "".join(f"{name}: {value};" for name, value in variables.items())
    own = (_FOLDER / "widget.css").read_text("utf-8")
    return f"{client_sheets()['alone']}{own}:host {{{host}}}\n"


class SavedPicture:
    """Outputs of one widget that a saved notebook shows in its place."""

    def __init__(
        self,
        draw: Callable[[], Mapping[str, Any]],
        run: Callable[[Callable[[], object]], object],
    ) -> None:
        """Show nothing yet.

        Args:
            draw: returns the picture by its MIME types.
            run: calls something in the thread that may draw.
        """
        self._draw, self._run = draw, run
        self._names: list[str] = []  # by which the outputs are put out again
        self._timer: threading.Timer | None = None

    def put_out(self) -> None:
        """Put the picture out below the cell that runs."""
        self._names.append(uuid4().hex)
        self._show(self._names[-1:], again=False)

    def follow(self) -> None:
        """Draw the picture again soon, in another thread; of quick calls the last one counts."""
        self.rest()
        if not self._names:
            return
        context = copy_context()  # of the message that it answers
        self._timer = threading.Timer(_PICTURE_DELAY_S, context.run, [self._run, self._again])
        self._timer.daemon = True
        self._timer.start()

    def rest(self) -> None:
        """Leave the picture as it is."""
        if self._timer is not None:
            self._timer.cancel()

    def _again(self) -> None:
        with suppress(HookVizError):  # the screen says why there are no tiles
            self._show(self._names, again=True)

    def _show(self, names: Sequence[str], *, again: bool) -> None:
        data = self._draw()
        for name in names:
            put_out(data, name=name, again=again)


class ExplorerWidget(anywidget.AnyWidget):
    """The explorer of one network and one image, live in a cell's output.

    What is clicked there can be read here, and what is set here is shown there. A network in
    training is looked at as it was when the widget was made or refreshed: the widget holds a copy,
    so that no answer sees half of a step. Of a network that `copy.deepcopy` can't copy it answers
    between cells, about the network as it is then, and a warning says so.

    Attributes:
        view: all that is chosen, a `hookviz.explorer.view.View`; set it to one, or to the words of
            a link such as ``{"layer": "conv1", "sort": "mean"}``.
        layer: the layer on the screen, by its name.
        channel: the channel that is picked up; None for none.
        cell: its cell by row and column; None where that is the channel's strongest.
    """

    _esm = client_script()
    _css = _PAGE_SHEET

    view = ViewTrait().tag(sync=True, to_json=to_client, from_json=from_client)
    layer = traitlets.Unicode()
    channel = traitlets.Int(None, allow_none=True)
    cell: Any = traitlets.Tuple(
        traitlets.Int(), traitlets.Int(), default_value=None, allow_none=True
    )
    _of_image: Callable[[Model, Any], Subject]
    _options: Mapping[str, Any]
    _is_copied: bool
    _subject = traitlets.Unicode().tag(sync=True)
    _home = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        model: Model | nn.Module,
        image: Any,
        *,
        size: int | None = None,
        whole: bool = False,
        view: View | Mapping[str, object] | None = None,
        height: int = _HEIGHT,
        **options: Any,
    ) -> None:
        """Look at `image` in `model`, as `hookviz.explore` says.

        Raises:
            HookVizError: the network, the image or the layer can't be looked at.
        """
        self._of_image, self._options = partial(make_subject, size=size, whole=whole), options
        own = wrap(model, **options)
        frozen, self._is_copied = _frozen_copy(own)
        about = self._of_image(frozen, image)
        self._begin(about, _fixed_input(about, image), own.network, view=view, height=height)

    @classmethod
    def of_capture(cls, capture: Capture, model: Model) -> "ExplorerWidget":
        """Return the explorer of what was captured, and of all else of that run.

        Raises:
            HookVizError: the network shows no channels, or has other weights than at the capture.
        """
        if capture.digest != model.cache_key:
            raise HookVizError(
                say("{model} has changed since this capture was made.", model=model.title)
            )
        widget = cls.__new__(cls)
        widget._of_image, widget._options = make_subject, {}
        frozen, widget._is_copied = _frozen_copy(model)
        about = make_subject(frozen, capture.model_input)
        engine.keep(replace(capture, digest=frozen.cache_key), about.cache)
        with_maps = {layer.name for layer in about.trace.shown}
        first = next((part.layer for part in capture.activations if part.layer in with_maps), None)
        widget._begin(about, about.model_input, model.network, view=View(layer=first))
        return widget

    def _begin(
        self,
        about: Subject,
        image: InputImage | ModelInput,
        network: nn.Module,
        *,
        view: View | Mapping[str, object] | None,
        height: int = _HEIGHT,
    ) -> None:
        self._about, self._image, self._network = about, image, network
        self._language = current()
        self._transport = CommTransport(
            lambda: self._about, self._language, self.send, self._answered
        )
        self._saved = SavedPicture(self._picture, self._beside_cells)
        self._moving = RLock()  # who sets the view: a cell, or a click in another thread
        self._follows = True
        begins = as_view(view or {})
        if begins.layer is not None:
            self._known_layer(begins.layer)
        home = client_start(self._language, height)
        super().__init__(view=begins, _subject=subject_key(about), _home=home)
        self._follow()
        self.on_msg(self._heard)

    @property
    def model(self) -> Model:
        """Network as it is looked at: of a person's own a copy, where it can be copied."""
        return self._about.model

    @property
    def capture(self) -> Capture:
        """Capture that is on the screen: of the layer, and of the step after it that is shown.

        Raises:
            HookVizError: the pass can't be run.
        """
        about, looked = self._about, self._looked()
        names = dict.fromkeys((looked.layer.name, looked.step.layer))
        return engine.capture(about.model, about.model_input, names, cache=about.cache)

    def refresh(self, model: Model | nn.Module | None = None, image: Any = None) -> None:
        """Look again, as after an epoch of training: at the network as it is now.

        Call it from the thread that trains, between two steps: the copy is made at once, and what
        is on the screen follows. Where nothing has changed nothing is computed anew.

        Args:
            model: another network to look at from now on.
            image: another image.

        Raises:
            HookVizError: the network or the image can't be looked at.
        """
        if isinstance(model, Model):
            own = model
        elif model is not None:
            own = wrap(model, **self._options)
        else:
            own = replace(self.model, network=self._network)
        is_known = model is None and not self._is_copied  # as one that can't be copied
        frozen, is_copied = (own, False) if is_known else _frozen_copy(own)
        given = self._image if image is None else image
        about = self._of_image(frozen, given)
        self._image, self._network = _fixed_input(about, given), own.network
        self._is_copied = is_copied
        if model is None and subject_key(about) == self._subject:
            return
        before, self._about = self._about, about
        self._transport.leave_all()
        before.cache.clear()
        self._transport.answer_ahead()
        self._subject = subject_key(about)
        self._follow()

    def close(self) -> None:
        """End the widget; what it kept is given back."""
        if self.comm is not None:  # it was made as a whole, and is not closed yet
            self._saved.rest()
            self._transport.leave_all()
            self._about.cache.clear()
        super().close()

    def _looked(self) -> ResolvedView:
        return resolve(self._about, self.view)

    def _shape(self) -> tuple[int, int, int]:
        """Return how many channels, rows and columns are on the screen."""
        channels, rows, columns = maps(self._about, self._looked()).shape
        return channels, rows, columns

    def _known_layer(self, name: str) -> str:
        layers = [layer.name for layer in self._about.trace.shown]
        if name not in layers:
            raise UnknownLayerError(say("layer with maps"), name, layers)
        return name

    @traitlets.observe("view")
    def _view_moved(self, _change: object) -> None:
        with self._moving:
            if not self._follows:
                self._follow()

    def _follow(self) -> None:
        """Say of the view which layer, channel and cell it shows."""
        self._follows = True
        try:
            channels, *size = self._shape()
            channel, cell = self.view.channel, self.view.cell
            self.layer = self._looked().layer.name
            self.channel = channel if channel is not None and channel < channels else None
            self.cell = None if cell is None or self.channel is None else cell.on(*size)
        finally:
            self._follows = False

    @traitlets.validate("layer")
    def _layer_there(self, proposal: Any) -> str:
        return self._known_layer(proposal["value"])

    @traitlets.validate("channel")
    def _channel_there(self, proposal: Any) -> int | None:
        channel: int | None = proposal["value"]
        channels, *_size = self._shape()
        if channel is not None:
            asked_number({"channel": channel}, "channel", channels, self._looked().step)
        return channel

    @traitlets.validate("cell")
    def _cell_there(self, proposal: Any) -> tuple[int, int] | None:
        cell: tuple[int, int] | None = proposal["value"]
        _channels, *size = self._shape()
        if cell is not None:
            asked_cell({"row": cell[0], "column": cell[1]}, (size[0], size[1]), self._looked().step)
        return cell

    @traitlets.observe("layer", "channel", "cell")
    def _chosen(self, change: Any) -> None:
        name, chosen = change["name"], change["new"]
        words: dict[str, Any] = {name: chosen}
        with self._moving:
            if self._follows:
                return
            if name == "channel":
                words["cell"] = None  # at its strongest
            elif name == "cell" and chosen is not None:
                _channels, *size = self._shape()
                words["cell"] = Cell(*chosen, *size)
            self.view = replace(self.view, **words)

    def _handle_msg(self, msg: Any) -> None:  # whatever comes from the client
        self._beside_cells(partial(super()._handle_msg, msg))

    def _beside_cells(self, call: Callable[[], object]) -> None:
        """Call at once about a copy of the network, else between two cells."""
        if self._is_copied:
            call()
        else:
            between_cells(call)

    def _heard(self, _widget: object, content: Any, _files: object) -> None:
        if not self._is_copied and subject_key(self._about) != self._subject:
            self.refresh()  # a cell has changed the network
        self._transport.heard(content, at_once=not self._is_copied)

    def _send(self, msg: Any, buffers: Any = None) -> None:  # whatever goes to the client
        self._transport.as_a_reply(partial(super()._send, msg, buffers=buffers))

    def _answered(self, pending: PendingQuestion) -> None:
        """Keep the picture of what is on the screen in the notebook, where it is to be saved."""
        if pending.question.name == "tiles":
            self._saved.follow()

    def _picture(self) -> dict[str, Any]:
        """Return the tiles on the screen as a picture, which needs no kernel; on white."""
        with speaking(self._language):
            grid = render(replace(self._about, colours=LIGHT), self.view).grid
            picture = grid_sheet(grid, f"{self._about.model.title} · {grid.title}")
        return {"image/png": picture, "text/plain": repr(self)}

    def __repr__(self) -> str:
        """Name the network and the layer: this is what text alone shows."""
        return f"<ExplorerWidget of {self._about.model.title}, {self._looked().step}>"

    def _repr_mimebundle_(self, **_kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, more = super()._repr_mimebundle_() or ({}, {})
        return {**data, **self._picture()}, more

    def _ipython_display_(self, **_kwargs: Any) -> None:
        self.put_out()

    def put_out(self) -> None:
        """Put out the picture, and then the widget, which hides it where it comes alive.

        As two outputs: of one JupyterLab takes the widget, and says that it is not there where the
        notebook is opened without its kernel.
        """
        self._saved.put_out()
        data, *more = super()._repr_mimebundle_() or ({},)
        # In words it would name the layer of now for ever, below a picture that follows.
        put_out({**data, "text/plain": ""}, *more)


def _frozen_copy(model: Model) -> tuple[Model, bool]:
    """Return a model that cells can't change, and whether it is one: else the given one."""
    try:
        return copied(model), True
    except ModelError as error:
        when = say("The explorer answers between cells, about the network as it is then.")
        warnings.warn(f"{error} {when}", stacklevel=4)
        return model, False


def _fixed_input(about: Subject, given: object) -> InputImage | ModelInput:
    """Return what was given as it was read: a file can change, and a tensor too."""
    return about.model_input if isinstance(given, Tensor | ModelInput) else about.image
