"""Choose an engine by its name."""

from importlib import import_module
from typing import Any

from hookviz.engines.engine import Engine, in_this_process
from hookviz.errors import EngineError, SettingError, shorten

LOCAL, RAY = "local", "ray"
_CHOICES = "'local', 'ray' and 'ray://HOST:PORT'"


def engine_of(engine: str | Engine, workers: int | None = None) -> Engine:
    """Return the engine of a name: this process, or the workers of a Ray cluster.

    Args:
        engine: ``"local"``; ``"ray"`` for the cluster that ``RAY_ADDRESS`` says, or else one of
            this machine's processors, for the time of the job; ``"ray://HOST:10001"`` for the
            cluster there. An engine is given back as it is.
        workers: how many processes of a cluster work at once; one for each processor by default.

    Raises:
        SettingError: there is no such engine, or `workers` means nothing to it.
        EngineError: Ray is not installed.
    """
    if workers is not None and (isinstance(workers, bool) or workers < 1):
        raise SettingError(f"workers={workers!r} is no whole number above 0.")
    if not isinstance(engine, str):
        if not callable(engine):
            raise SettingError(f"engine={shorten(repr(engine))} is none of {_CHOICES}.")
        return engine
    if engine == LOCAL:
        if workers is not None:
            raise SettingError("workers= is for engine='ray'; this process works alone.")
        return in_this_process
    if engine != RAY and not (engine.startswith("ray://") and len(engine) > len("ray://")):
        raise SettingError(f"engine={shorten(engine)!r} is none of {_CHOICES}.")
    address = None if engine == RAY else engine
    ray_engine: Engine = _ray_engine().RayEngine(address=address, workers=workers)
    return ray_engine


def _ray_engine() -> Any:
    """Import the module that knows Ray, for those alone who ask for it."""
    try:
        return import_module("hookviz.engines.ray_engine")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != RAY:
            raise
        raise EngineError(
            "Ray is not installed: pip install 'hookviz[ray]'. engine='local' works without it."
        ) from error
