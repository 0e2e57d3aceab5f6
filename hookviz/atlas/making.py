"""Make an atlas of a model and images: one pass over the images, and one look at the winners."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.files import ABOUT, NUMBERS, atlas_files, load_atlas
from hookviz.atlas.part_folder import LEFTOVERS, PATCHES, PartFolder, PatchFile
from hookviz.atlas.patches import cut_images, winners
from hookviz.atlas.plan import (
    BATCH,
    ChannelTable,
    Plan,
    Source,
    channel_table,
    check_takes_images,
    differences,
    names_with_maps,
    no_channels,
    sources,
    trace_by,
)
from hookviz.atlas.shard_work import ShardWork, TallyShard
from hookviz.atlas.tally import TOP, Tally
from hookviz.capturing.batch_images import Images
from hookviz.deprecated import renamed_keyword
from hookviz.engines.engine import Engine, engine_of
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of
from hookviz.types import Model

SUFFIX = ".atlas"
_SECONDS = 10.0  # of work that a kill costs, where a shard takes less


@dataclass(frozen=True, slots=True)
class AtlasProgress:
    """Progress of `make_atlas`.

    Attributes:
        cutting: whether the pass is done and patches are being cut.
        done: images that are done, of the pass or of the cutting.
        images: how many there are to do.
        left_out: images that could not be read so far.
        per_second: images a second since this run began; 0.0 before the first.
    """

    cutting: bool
    done: int
    images: int
    left_out: int
    per_second: float

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the pass or of the cutting; None before anything is done."""
        return (self.images - self.done) / self.per_second if self.per_second else None

    @property
    def share(self) -> float:
        """Share that is done of both together, 0…1; the pass counts as nine tenths."""
        part = self.done / max(1, self.images)
        return 0.9 + 0.1 * part if self.cutting else 0.9 * part


Report = Callable[[AtlasProgress], object]


@renamed_keyword("anew", "overwrite")
def make_atlas(
    model: Model | nn.Module,
    images: Images,
    path: str | os.PathLike[str],
    *,
    layers: str | Iterable[str] | None = None,
    top: int = TOP,
    batch: int = BATCH,
    size: int | None = None,
    dtype: str = "float32",
    patch: int = 64,
    overwrite: bool = False,
    progress: Report | None = None,
    engine: str | Engine = "local",
) -> Atlas:
    """Find the images that excite each channel of each layer most, and keep them in a file.

    One pass over the images; then those that are among the strongest of any channel are read again,
    and what the cell sees is cut out of them. What was begun and ended, by Ctrl-C, a kill or a full
    disk, goes on from there when the same is asked for again, and the result is the same. Images
    that can't be read are left out and counted.

    Of equal values the earlier image comes first, and within it the earlier cell; equal pictures
    count once. NaN counts as nothing.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        images: a folder, a pattern, or several of what `prepare_input` takes, such as a dataset or
            a loader, whose images are kept in memory; by names in a mapping. In a folder of folders
            these are classes.
        path: a folder that is made, ``NAME.atlas``.
        layers: a layer's name, several, or None for those that the page lists first, as
            ``list_layers(model, kind="usual")`` does: the conv layers, and of a network with few of
            them, such as a transformer, its blocks too. Any will do whose `LayerInfo.layout` is
            known: linear layers on tokens, and such as have their channels last. Of what attention
            has mixed a patch is the cell's own place on the image.
        top: how many images are kept of each channel.
        batch: images a pass. With several the values are those of `capture` to rounding, with 1
            exactly.
        size: side of the inputs in pixels, instead of the model's own.
        dtype: ``"float32"``, or ``"bfloat16"``, which is faster and rounds to 3 digits.
        patch: the longer side of a patch in pixels, at most.
        overwrite: drop what was begun, or made, under that name.
        progress: called with how far it is; what it raises ends the run, which can be continued.
        engine: what goes through the images: ``"local"``, ``"ray"`` or ``"ray://HOST:PORT"``, as
            docs/scaling.md says. The patches are cut in this process.

    Raises:
        SettingError: an option means nothing.
        UnknownLayerError: the model has no layer of that name.
        ModelError: the network takes no images, or none of these; a layer puts out no maps.
        HookVizError: there is no image that can be read; `path` is something else, or an atlas of
            something else.

    >>> import tempfile
    >>> model = hookviz.load_model("shapesnet")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = hookviz.make_atlas(model, "assets/samples", f"{folder}/samples.atlas", top=2)
    ...     [(top.image.name, top.cell) for top in atlas.top_activations("stage3.second.conv", 5)]
    [('heart.jpg', (3, 3)), ('flower.jpg', (1, 6))]
    """
    Plan.check(top, batch, patch, dtype)
    model = as_model(model)
    chosen = engine_of(engine)
    target = _target(path)
    listed = sources(model, images)
    table = _channel_table(model, listed, size, layers)
    plan = Plan(model, listed, table, top, batch, size, dtype, patch)
    if target.exists() and not overwrite:
        return _existing_atlas(target, plan)
    _check_all_ours(target)
    part = PartFolder.of(target)
    with part.locked(plan, overwrite=overwrite):
        tally = _tally_images(plan, part, chosen, progress)
        with PatchFile(part, table.channels * top) as cut:
            _cut(plan, tally, cut, progress)
            cut.keep()
            for name, data in atlas_files(plan, tally, cut, target.parent).items():
                part.write(name, data)
        if overwrite and target.exists():
            _remove(target)
        part.finish()
    return load_atlas(target)


def _target(path: str | os.PathLike[str]) -> Path:
    target = path_of(path)
    if not target.name.endswith(SUFFIX) or target.name == SUFFIX:
        raise SettingError(
            f"{shorten(str(path))!r} is no name of an atlas; give one such as 'photos{SUFFIX}'."
        )
    if target.exists() and not target.is_dir():
        raise HookVizError(f"{shorten(str(path))!r} is there already, and is no atlas.")
    return target


def _channel_table(
    model: Model, listed: Sequence[Source], size: int | None, layers: str | Iterable[str] | None
) -> ChannelTable:
    """List the model's channels, by the first image that can be read."""
    check_takes_images(model)
    first: HookVizError | None = None
    for source in listed:
        try:
            trace, input_shape = trace_by(model, source.image, size)
        except HookVizError as error:
            first = first or error
        else:
            names = names_with_maps(model, trace, layers)
            table = channel_table(trace, names, input_shape)
            if not table.channels:
                raise no_channels(model)
            return table
    assert first is not None
    if len(listed) == 1:
        raise first
    raise HookVizError(
        f"None of the {len(listed):,} images can be used. {shorten(listed[0].name)}: {first}"
    ) from first


def _existing_atlas(target: Path, plan: Plan) -> Atlas:
    atlas = load_atlas(target)
    what = differences(atlas.described(), plan.described())
    if what:
        raise HookVizError(
            f"{str(target)!r} is there already, and is another atlas: {what}. Give another name, "
            "or overwrite it (overwrite=True, --overwrite)."
        )
    return atlas


def _tally_images(plan: Plan, part: PartFolder, engine: Engine, progress: Report | None) -> Tally:
    """Tally all images, going on from what an earlier run tallied."""
    empty = Tally.empty(plan.table.channels, plan.top, len(plan.classes))
    tally, done = part.read_tally(empty)
    shards = plan.shards
    reporter = _AtlasReporter(progress, len(plan.sources), cutting=False)
    reporter.report_before(sum(map(len, shards[:done])), tally.left_out_count)
    written_at = time.monotonic()
    written = done
    is_whole = True  # whether the tally is that of the shards that are done, and of no part of one
    rest = (TallyShard.of(plan, shard, tally.top.least.copy()) for shard in shards[done:])
    try:
        for other in engine(ShardWork(plan), rest, reporter.report):
            is_whole = False
            tally.merge(other)
            done += 1
            is_whole = True
            if time.monotonic() - written_at > _SECONDS:
                part.write_tally(tally, done)
                written_at, written = time.monotonic(), done
    finally:
        if done > written and is_whole:  # whatever ended it: what is done is not done again
            part.write_tally(tally, done)
    if not tally.tallied:
        part.drop()
        index, reason = min(tally.left_out.items())
        raise HookVizError(
            f"None of the {len(plan.sources):,} images can be used. "
            f"{shorten(plan.sources[index].name)}: {reason}"
        )
    return tally


def _cut(plan: Plan, tally: Tally, cut: PatchFile, progress: Report | None) -> None:
    indices = winners(tally)
    reporter = _AtlasReporter(progress, len(indices), cutting=True)
    reporter.report_before(sum(index < cut.next_index for index in indices), tally.left_out_count)
    try:
        for done, image in enumerate(cut_images(plan, tally, cut.next_index), start=1):
            cut.add(image)
            reporter.report(done, 0)
    except BaseException:
        cut.keep()
        raise


class _AtlasReporter:
    """Reporter of `AtlasProgress` to whoever asked for it."""

    def __init__(self, progress: Report | None, images: int, *, cutting: bool) -> None:
        self._progress = progress
        self._images = images
        self._cutting = cutting
        self._before = self._left_out = 0
        self._began = time.perf_counter()

    def report_before(self, done: int, left_out: int) -> None:
        """Report how much was done before this run."""
        self._before, self._left_out = done, left_out
        self.report(0, 0)

    def report(self, done: float, left_out: int) -> None:
        """Report how many images this run has done."""
        if self._progress is None:
            return
        seconds = time.perf_counter() - self._began
        counts = (self._before + int(done), self._images, self._left_out + left_out)
        per_second = done / seconds if seconds > 0 else 0.0
        self._progress(AtlasProgress(self._cutting, *counts, per_second))


_OURS = (ABOUT, NUMBERS, PATCHES, *LEFTOVERS)


def _check_all_ours(target: Path) -> None:
    """Check that a folder which is to be removed holds files of an atlas alone."""
    names = {file.name for file in target.iterdir()} if target.exists() else set()
    others = sorted(names.difference(_OURS))
    if others:
        raise HookVizError(
            f"{str(target)!r} holds {shorten(others[0])!r}, which is no part of an atlas, and is "
            "not removed. Give another name."
        )


def _remove(target: Path) -> None:
    """Remove an atlas and nothing else."""
    _check_all_ours(target)
    for name in _OURS:
        (target / name).unlink(missing_ok=True)
    target.rmdir()
