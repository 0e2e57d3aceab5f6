"""Have PyTorch Lightning record a training by a callback, where Lightning is installed."""

from contextlib import ExitStack
from importlib import import_module
from typing import Any

from hookviz.errors import HookVizError
from hookviz.hooking.modules import module_named, network_of
from hookviz.training.recording import record
from hookviz.training.training_log import TrainingLog


def lightning_callback(network: str = "", **options: Any) -> Any:
    """Return a ``lightning.Callback`` that records while the trainer fits; see `record`.

    Its ``log`` is the `TrainingLog`. Without ``to=`` each step is written to the trainer's own
    logger, where that is TensorBoard's or Weights & Biases'.

    Args:
        network: the dotted path of what is called in each step, such as ``"model"`` where
            ``training_step`` calls ``self.model(images)``; the module itself without it.
        options: as of `record`.

    Raises:
        HookVizError: Lightning is not installed.

    >>> callback = hookviz.lightning_callback(every=10)
    >>> callback.log.rows  # filled by Trainer(callbacks=[callback]).fit(module, loader)
    []
    """
    try:
        lightning = import_module("lightning.pytorch")
    except ImportError:
        try:
            lightning = import_module("pytorch_lightning")
        except ImportError as error:
            raise HookVizError(
                "PyTorch Lightning is not installed: pip install lightning. Without it, "
                "hookviz.record(network) goes around any loop."
            ) from error

    class Recording(lightning.Callback):  # type: ignore[name-defined,misc]
        """Records between the beginning and the end of a training."""

        def __init__(self) -> None:
            super().__init__()
            self.log = TrainingLog()
            self._open = ExitStack()

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            """Begin to record."""
            chosen = {"to": _client(trainer)} | options
            recording = record(module_named(network_of(pl_module), network), **chosen)
            self.log = self._open.enter_context(recording)

        def on_train_end(self, *_: Any) -> None:
            """End, and remove every hook."""
            self._open.close()

        def on_exception(self, *_: Any) -> None:
            """End, and remove every hook."""
            self._open.close()

    return Recording()


def _client(trainer: Any) -> Any:
    """Return what the trainer's logger writes with; None where that is another tracker's."""
    client = getattr(trainer.logger, "experiment", None)
    is_board = hasattr(client, "add_histogram") and hasattr(client, "add_image")
    is_run = type(client).__module__.partition(".")[0] == "wandb"
    return client if is_board or is_run else None
