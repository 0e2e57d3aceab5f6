"""Make an atlas of uploaded files in memory, a little at a time, so that others come between.

Images go through one by one, so that each value is the one that `capture` gives.
"""

import io
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.files import atlas_about, atlas_in_memory, atlas_numbers
from hookviz.atlas.patches import CutPatches, Cutter
from hookviz.atlas.plan import ChannelTable, Plan, Source, check_takes_images, no_channels, table_by
from hookviz.atlas.shard_work import ShardWork, TallyShard
from hookviz.atlas.tally import TOP, Tally
from hookviz.capturing.image_shards import READ_THREADS
from hookviz.errors import HookVizError, ImageError, shorten
from hookviz.images.reading import pixel_count
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.settings import settings
from hookviz.types import Model

_MOST_ENTRIES = 120_000  # of all channels' lists together: large networks keep fewer of each
_MOST_TOGETHER = 16  # images between two looks at the clock
_CHANNEL_BYTES, _ENTRY_BYTES, _PATCH_BYTES = 640, 48, 300  # of what is kept beside the pictures
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """Progress of an atlas that is being made.

    Attributes:
        cutting: whether all images are through and patches are being cut.
        done: images that are through, or cut.
        images: how many there are to do.
        left_out: images that could not be used so far.
    """

    cutting: bool
    done: int
    images: int
    left_out: int


class GrowingAtlas:
    """Atlas of one model that is made in steps; nothing of the model is kept between them.

    Attributes:
        names: what the images are called in it, in the order of the files.
        atlas: the finished one; None until then.
    """

    def __init__(self, files: Sequence[tuple[str, bytes]], *, patch: int = 64, most: int) -> None:
        """Note the files, and compute nothing yet.

        Args:
            files: what each is called, and its bytes.
            patch: the longer side of a patch in pixels, at most.
            most: bytes that all of it may take beside the files.
        """
        self._sources = _sources(files)
        self.names = tuple(source.name for source in self._sources)
        self._patch, self._most = patch, most
        self._refused: dict[int, str] = {}  # of those before the first that can be read
        self._table = ChannelTable(())
        self._tally: Tally | None = None
        self._cut: CutPatches | None = None
        self._next = 0
        self._winners: list[int] = []
        self._seconds_each = 0.0
        self.atlas: Atlas | None = None

    def go_on(self, model: Model, seconds: float) -> None:
        """Work for about that many seconds, and for one image at least.

        Raises:
            HookVizError: none of the images can be used, or it becomes larger than it may.
            ModelError: the network takes no images, or has no conv layer.
        """
        until = time.monotonic() + seconds
        cutter: Cutter | None = None
        while self.atlas is None:
            if self._tally is None:
                self._begin(model)
            elif self._next < len(self._sources):
                self._tally_some(self._plan(model), self._tally, until - time.monotonic())
            else:
                plan = self._plan(model)
                cutter = cutter or Cutter(plan, self._tally)
                self._cut_one(cutter, plan, self._tally)
            self._check_size()
            if time.monotonic() >= until:
                break

    @property
    def progress(self) -> BuildProgress:
        """Progress so far."""
        left_out = len(self._refused) if self._tally is None else self._tally.left_out_count
        if self._cut is not None:
            return BuildProgress(True, len(self._cut.indices), len(self._winners), left_out)
        return BuildProgress(False, self._next, len(self._sources), left_out)

    @property
    def nbytes(self) -> int:
        """Approximate bytes that it takes beside the files."""
        if self._tally is None:
            return 0
        values = self._tally.top.values
        lists = len(values) * _CHANNEL_BYTES + values.size * _ENTRY_BYTES
        if self._cut is None:
            return lists
        return lists + self._cut.starts[-1] + len(self._cut.boxes) * _PATCH_BYTES

    def _plan(self, model: Model) -> Plan:
        top = max(1, min(TOP, _MOST_ENTRIES // self._table.channels))
        return Plan(model, self._sources, self._table, top=top, batch=1, patch=self._patch)

    def _begin(self, model: Model) -> None:
        """Learn the model's channels by the next image, if it can be used."""
        check_takes_images(model)
        index = len(self._refused)
        if index == len(self._sources):
            raise HookVizError(
                say(
                    "None of the {count:,} images can be used. {reason}",
                    count=index,
                    reason=self._refused[0],
                )
            )
        source = self._sources[index]
        reason = _why_not(source)
        if reason:
            self._refused[index] = reason
            return
        try:
            table = table_by(model, source.image, None)
        except HookVizError as error:
            self._refused[index] = str(error)
            return
        if not table.channels:
            raise no_channels(model)
        self._table = table
        self._tally = Tally.empty(table.channels, self._plan(model).top, 0)
        for refused, reason in self._refused.items():
            self._tally.leave_out(refused, reason)
        self._next = index

    def _tally_some(self, plan: Plan, tally: Tally, seconds: float) -> None:
        """Take in as many of the next images as there is time for, and one at least."""
        count = int(seconds / self._seconds_each) if self._seconds_each else 1
        first = last = self._next
        reason = ""
        while last < min(len(self._sources), first + max(1, min(count, _MOST_TOGETHER))):
            reason = _why_not(self._sources[last])
            if reason:
                tally.leave_out(last, reason)
                break
            last += 1
        if first < last:
            started = time.monotonic()
            shard = TallyShard.of(plan, range(first, last), tally.top.least.copy())
            part = ShardWork(plan)(shard, lambda *_progress: None)
            for index, fault in part.left_out.items():  # bytes have no name there
                name = self._sources[index].name
                part.left_out[index] = fault.replace("'image'", repr(name), 1)
            tally.merge(part)
            self._seconds_each = (time.monotonic() - started) / (last - first)
        self._next = last + bool(reason)

    def _cut_one(self, cutter: Cutter, plan: Plan, tally: Tally) -> None:
        """Cut the patches of the next image; after the last of them it is an atlas."""
        if self._cut is None:
            if not tally.tallied:
                _, reason = min(tally.left_out.items())
                raise HookVizError(
                    say(
                        "None of the {count:,} images can be used. {reason}",
                        count=len(self._sources),
                        reason=reason,
                    )
                )
            self._winners = list(cutter.entries)
            self._cut = CutPatches(plan.table.channels * plan.top, io.BytesIO())
        if len(self._cut.indices) < len(self._winners):
            self._cut.add(cutter(self._winners[len(self._cut.indices)]))
            return
        about = atlas_about(plan, tally, self._cut, Path())
        patches = self._cut.file
        assert isinstance(patches, io.BytesIO)
        name = f"{secrets.token_hex(4)}.atlas"
        numbers = atlas_numbers(tally, self._cut)
        self.atlas = atlas_in_memory(name, about, numbers, patches.getvalue())

    def _check_size(self) -> None:
        """Check that it is no larger than it may be.

        Raises:
            HookVizError: it may not.
        """
        if self.nbytes > self._most:
            raise HookVizError(
                say(
                    "This atlas becomes larger than the {limit:,.0f} MB that it may take here. "
                    "Fewer images or a smaller network take less, and on a machine of your own: "
                    "hookviz atlas.",
                    limit=self._most / MEGABYTE,
                )
            )


def _sources(files: Sequence[tuple[str, bytes]]) -> list[Source]:
    """Name the files plainly, without folders, and each differently."""
    by_name: dict[str, Source] = {}
    for path, data in files:
        last = path.replace("\\", "/").rpartition("/")[2]
        plain = "".join(letter for letter in last if letter.isprintable()).strip()
        name = base = shorten(plain, _LONGEST_NAME) or "image"
        number = 1
        while name in by_name:
            number += 1
            name = f"{base} ({number})"
        by_name[name] = Source(name, data)
    return list(by_name.values())


def _why_not(source: Source) -> str:
    """Return why an image can't be used, by its header; empty where it can.

    All that are read at once are together no larger than one image may be.
    """
    try:
        pixels, most = pixel_count(source.image, source.name), _most_pixels()
    except ImageError as error:
        return str(error)
    if pixels <= most:
        return ""
    return say(
        "{source!r} has {megapixels:,.1f} million pixels, and an image of an atlas can "
        "have {limit:,.1f} million here; give a smaller version.",
        source=source.name,
        megapixels=pixels / 1e6,
        limit=most / 1e6,
    )


def _most_pixels() -> int:
    return settings().max_pixels // READ_THREADS
