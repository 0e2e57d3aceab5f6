"""Open the explorer where a person works: as a widget in a notebook, or as the app."""

from typing import TYPE_CHECKING, Any, overload

from torch import nn

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.notebook.kernel import check_widgets, in_notebook
from hookviz.types import Model
from hookviz.ui.serving.local_app import Explorer, open_app

if TYPE_CHECKING:
    from hookviz.notebook.widget import ExplorerWidget


@overload
def explore(
    model: Model | nn.Module, *, port: int = 0, open_browser: bool = True, **options: Any
) -> Explorer: ...
@overload
def explore(model: Model | nn.Module, image: Any, **options: Any) -> "ExplorerWidget": ...
def explore(
    model: Model | nn.Module,
    image: Any = None,
    *,
    port: int = 0,
    open_browser: bool = True,
    **options: Any,
) -> Any:
    """Open the explorer on a model of your own: with an image in the notebook, else in the app.

    With an image, in a notebook, what comes back is a widget: its ``view``, ``layer``, ``channel``
    and ``cell`` say what is clicked and can be set, its ``capture`` is what is on the screen, and
    ``refresh()`` looks again at a network in training. Without one the app is served by this
    process to this machine alone. Both answer while a network of one's own trains, so they look at
    a `copy.deepcopy` of it, made when they are and at each refresh. Where it can't be copied a
    warning says so: the widget then answers between cells, and the app shows the network itself.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `capture` takes; in a notebook alone.
        port: of the app, where to listen; any free port by default. A later call uses the first
            one's.
        open_browser: open a browser on the app.
        options: for `wrap`: ``preprocess``, ``categories``, ``name``, ``example``. With an image
            also ``size`` and ``whole``, as of `capture`; ``view``, what to begin with, such as
            ``{"layer": "conv1", "channel": 3}``; and ``height`` in pixels.

    Returns:
        A `hookviz.notebook.widget.ExplorerWidget` of an image, else an `Explorer`.

    Raises:
        ModelError: `model` is neither.
        HookVizError: an image is given and this is no notebook; the packages that it takes are not
            installed; nothing can listen on that port, or the app is on another one already.

    >>> with hookviz.explore(network) as app:  # doctest: +SKIP
    ...     input(f"{app.url} until you press Enter")
    """
    if image is None:
        return open_app(model, port=port, open_browser=open_browser, **options)
    if not in_notebook():
        raise HookVizError(
            say(
                "explore(model, image) shows a widget, which takes a notebook's kernel: Jupyter, "
                "VS Code, Colab or marimo. Here explore(model) opens the app, into which an image "
                "is dropped, and capture(model, image) has the numbers."
            )
        )
    check_widgets()
    from hookviz.notebook.widget import ExplorerWidget  # noqa: PLC0415 - it needs anywidget

    return ExplorerWidget(model, image, **options)
