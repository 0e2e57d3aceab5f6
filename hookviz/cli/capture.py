"""``hookviz capture``: write activations as files, and print what the model makes of an image."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from hookviz.capturing import engine as capturing
from hookviz.capturing import export
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.streaming import stream
from hookviz.cli.options import (
    Row,
    destinations,
    each,
    engine_options,
    finish_rows,
    input_options,
    keep_existing,
    layer_names,
    load,
    model_options,
    out_option,
)
from hookviz.engines.engine import LOCAL, Engine, engine_of
from hookviz.errors import HookVizError, SettingError
from hookviz.images.files import ImageFile, expand
from hookviz.paths import path_of
from hookviz.types import Activation, Capture, Model, ModelInput
from hookviz.wording import text_table, times

_WRITERS = {".npz": export.npz, ".safetensors": export.safetensors}
_TOGETHER = {".npz": export.npz_together, ".safetensors": export.safetensors_together}
_HEAD = ("layer", "shape", "minimum", "maximum", "mean", "deviation", "zeros")


@click.command()
@click.argument("image", nargs=-1, required=True)
@model_options
@click.option(
    "--layers",
    "--layer",
    help="Names with commas between, or maps, or all, as `hookviz layers --kind` lists them; "
    "convolutions by default.",
)
@input_options
@click.option("--together", is_flag=True, help="All in one pass, as one batch, and in one file.")
@out_option(".npz", "An .npz or .safetensors file, or a folder.")
@engine_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def capture(
    *,
    image: tuple[str, ...],
    model: str,
    layers: str | None,
    size: int | None,
    whole: bool,
    together: bool,
    out: str | None,
    engine: str,
    workers: int | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Record the activations of each IMAGE: a file, a folder or a pattern.

    They are float32 arrays, channels×height×width for a convolution, under the layers' names, and
    the network's input as "input". For many images OUT is a folder, or has {name} in it. Without
    -o only the summary is printed: the top 5 classes, and each layer's shape and numbers.
    With --together OUT is one file, with the images along the first dimension of every array in
    the order of "images", which says which is which.
    """
    chosen = engine_of(engine, workers)
    pictures, rows = keep_existing(expand(image))
    if together:
        file = _one_file(out, engine)
        outputs: dict[ImageFile, Path] = {}
    else:
        outputs = destinations(out, pictures, tuple(_WRITERS)) if out is not None else {}
    if pictures and together:
        loaded = load(model, **loading)
        wanted = layer_names(loaded, layers)
        rows += _record_together(loaded, pictures, wanted, file, size=size, whole=whole)
    elif pictures:
        loaded = load(model, **loading)
        wanted = layer_names(loaded, layers)
        rows += _record_each(loaded, pictures, wanted, outputs, chosen, size=size, whole=whole)
    finish_rows(rows, _echo, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Recorder:
    """Picklable function from a capture to its row and the bytes of its file, for a worker."""

    suffix: str

    def __call__(self, cap: Capture) -> tuple[Row, bytes | None]:
        return summary(cap), _WRITERS[self.suffix](cap) if self.suffix else None


def _record_each(
    model: Model,
    pictures: Sequence[ImageFile],
    layers: list[str] | None,
    outputs: Mapping[ImageFile, Path],
    engine: Engine,
    *,
    size: int | None,
    whole: bool,
) -> list[Row]:
    """Capture image by image, and return a row for each; workers make the files' bytes."""
    suffix = next((output.suffix.casefold() for output in outputs.values()), "")
    named = {str(picture): picture for picture in pictures}
    recorder = _Recorder(suffix)
    options: dict[str, Any] = {"size": size, "whole": whole, "engine": engine, "batch_size": 1}
    recordings = stream(model, named, layers, recorder, **options)

    def record(picture: ImageFile) -> Row:
        _, recorded = next(recordings)
        if isinstance(recorded, HookVizError):
            raise recorded
        row, data = recorded
        output = outputs.get(picture)
        if output:
            output.write_bytes(data)
        return {"out": str(output) if output else None, **row}

    with closing(recordings):
        return each(pictures, record)


def _one_file(out: str | None, engine: str) -> Path | None:
    """Return the path of the file that takes all images together; None without ``-o``."""
    if engine != LOCAL:
        raise SettingError(
            f"--together is one pass, which one process does: leave out --engine {engine}."
        )
    if out is None:
        return None
    path = path_of(out)
    if path.suffix.casefold() not in _TOGETHER:
        raise SettingError(
            f"-o {out!r} ends in none of {', '.join(_TOGETHER)}: together the images go into one "
            "file."
        )
    return path


def _record_together(
    model: Model,
    pictures: Sequence[ImageFile],
    layers: list[str] | None,
    file: Path | None,
    *,
    size: int | None,
    whole: bool,
) -> list[Row]:
    """Capture all images that can be read in one pass into one file; return a row for each."""
    inputs: dict[str, ModelInput] = {}

    def read(picture: ImageFile) -> Row:
        inputs[str(picture)] = prepare_input(model, picture, size=size, whole=whole)
        return {}

    failed = [row for row in each(pictures, read) if "error" in row]
    if not inputs:
        return failed
    caps = capturing.capture(model, list(inputs.values()), layers)
    captures = dict(zip(inputs, caps, strict=True))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_TOGETHER[file.suffix.casefold()](captures))
    goes_to = None if file is None else str(file)
    rows = [{"image": name, "out": goes_to, **summary(cap)} for name, cap in captures.items()]
    return [*({**row, "place": place} for place, row in enumerate(rows)), *failed]


def summary(cap: Capture) -> Row:
    """Return what a program may want to know of a capture without reading its arrays."""
    scores = cap.predictions(5) if cap.top() else ()
    word = "probability" if cap.answer is not None and cap.answer.is_share else "score"
    return {
        "model": cap.model,
        "weights": cap.weights,
        "digest": cap.digest,
        "input": tuple(cap.input.shape),
        "seconds": cap.seconds,
        "predictions": [{"label": label, word: value} for label, value in scores],
        "layers": [_numbers(address, part) for address, part in cap.items()],
    }


def _numbers(address: str, part: Activation) -> dict[str, Any]:
    """Return shape and statistics over the finite values; NaN where there are none."""
    values = part.values.numpy()
    finite = values[np.isfinite(values)].astype(np.float64)
    numbers = dict.fromkeys(_HEAD[2:], float("nan"))
    if finite.size:
        statistics = (finite.min(), finite.max(), finite.mean(), finite.std(), (finite == 0).mean())
        numbers = dict(zip(_HEAD[2:], map(float, statistics), strict=True))
    return {
        "layer": address,
        "shape": values.shape,
        **numbers,
        "nan": int(np.isnan(values).sum()),
        "inf": int(np.isinf(values).sum()),
    }


def _echo(row: Row) -> None:
    goes_to = f" → {row['out']}" if row["out"] else ""
    goes_to += f"[{row['place']}]" if goes_to and "place" in row else ""
    click.echo(f"{row['image']}{goes_to}")
    for scored in row["predictions"]:
        value = scored.get("probability")
        written = f"{scored['score']:6.4g}" if value is None else f"{value:6.1%}"
        click.echo(f"  {written}  {scored['label']}")
    rows = [
        (
            layer["layer"],
            times(layer["shape"]),
            *(f"{layer[name]:.4g}" for name in _HEAD[2:-1]),
            f"{layer['zeros']:.1%}",
        )
        for layer in row["layers"]
    ]
    click.echo(text_table(_HEAD, rows, right=_HEAD[2:]))
