"""Put a followed pass into the blocks that its layers are named by, and its data's ways into lines.

Every call of a layer, and every join of branches, is one part; the call of a block holds those that
ran in it. A line leads from part to part; between parts of different blocks it leads to the border
of the one, along the blocks around, and in from the border of the other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hookviz.explaining.network_map.followed_pass import IMAGE, BlockCall, ExecutionTrace, LayerStep
from hookviz.types import ActivationKey

ENTRY, EXIT = -1, -2
"""Where a part's lines come in, and where they go out, among the numbers of its parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """A call of a layer, a join, or a call of a block with its parts.

    Attributes:
        address: the call; of a join its function and how often that was one before.
        kind: the module's class; of a join empty.
        step: of a layer or a join its number in the pass, from 1; of a block 0.
        shape: of what it puts out, as people write it, the batch included.
        parts: of a block, in the order in which they ran.
        lines: between the parts by their numbers, from 0; `ENTRY` and `EXIT` are its borders.
    """

    address: ActivationKey
    kind: str
    step: int
    shape: str
    parts: tuple["Part", ...] = ()
    lines: tuple[tuple[int, int], ...] = ()

    @property
    def is_join(self) -> bool:
        """Return whether it is a function that brings branches together."""
        return self.step > 0 and not self.kind

    def leaves(self) -> Iterable["Part"]:
        """Yield the layers and joins in it, in the order in which they ran."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.leaves()


def network_map(trace: ExecutionTrace, network: str = "", least: int = 6) -> Part:
    """Return the network as a part: its blocks, their layers, and the lines between them.

    A block of one part alone is that part. Where the network itself has few parts, such as VGG's
    ``features`` and ``classifier``, what is in the largest of them lies beside the others.

    Args:
        trace: of a pass that was followed with its joins.
        network: its class.
        least: how many parts it has at least, as long as any of them is a block.

    >>> steps = [LayerStep(ActivationKey("a"), "Conv2d", 0, frozenset((IMAGE,)), "", "1×2×4×4")]
    >>> network_map(ExecutionTrace(tuple(steps), (), frozenset((1,)))).lines
    ((-1, 0), (0, -2))
    """
    steps = trace.steps
    root = BlockCall(ActivationKey(""), network, -1, 1, "", len(steps))
    ran = [block for block in trace.blocks if block.first <= block.last]
    whole = _Box(root, ran, steps)
    while len(whole.inside) < least and (largest := whole.largest()) is not None:
        ran = [block for block in ran if block is not largest.call]
        whole = _Box(root, ran, steps)
    for number, step in enumerate(steps, 1):
        for source in step.sources:
            whole.connect(source, number)
    for number in trace.output:
        whole.connect(number, None)
    return whole.part()


def shares_along(
    part: Part, lines: Mapping[tuple[int, int | None], float]
) -> dict[ActivationKey, dict[tuple[int, int], float]]:
    """Return what goes along each line of a map, by the block that it is drawn in.

    Args:
        part: the map.
        lines: the share that goes from a step to a step, from `IMAGE`, or to None, the network's
            output, as `hookviz.explaining.network_map.class_paths.ClassPaths` has them.
    """
    found: dict[ActivationKey, dict[tuple[int, int], float]] = {}
    place = {leaf.step: number for number, each in enumerate(part.parts) for leaf in each.leaves()}
    inner: dict[int, dict[tuple[int, int | None], float]] = {}
    here = found.setdefault(part.address, {})
    for (source, target), share in lines.items():
        begin, end = place.get(source, ENTRY), EXIT if target is None else place.get(target, EXIT)
        if begin != end:
            here[begin, end] = here.get((begin, end), 0.0) + share
        for number in {begin, end} - {ENTRY, EXIT}:
            inner.setdefault(number, {})[source, target] = share
    for number, those in inner.items():
        if part.parts[number].parts:
            found |= shares_along(part.parts[number], those)
    return found


class _Box:
    """A block call with the boxes and steps that ran in it, in order."""

    def __init__(
        self, call: BlockCall, blocks: Sequence[BlockCall], steps: Sequence[LayerStep]
    ) -> None:
        self.call = call
        self.steps = steps
        self.inside: list[_Box | int] = []
        self.lines: dict[tuple[int, int], None] = {}
        self.place: dict[int, int] = {}  # of each step, which of what is inside it is in
        number = call.first
        left = list(blocks)
        while number <= call.last:
            here: _Box | int = number
            if left and left[0].first == number:
                block = left.pop(0)
                parts = [each for each in left if each.last <= block.last]
                left = left[len(parts) :]
                if not _is_step(block, parts, steps):
                    here = _Box(block, parts, steps)
            last = here.call.last if isinstance(here, _Box) else number
            for step in range(number, last + 1):
                self.place[step] = len(self.inside)
            self.inside.append(here)
            number = last + 1

    def connect(self, source: int | None, target: int | None) -> None:
        """Draw a line from a step to a step; None and `IMAGE` are outside of it."""
        begin = ENTRY if source in (None, IMAGE) else self.place.get(source or 0, ENTRY)
        end = EXIT if target is None else self.place.get(target, EXIT)
        if begin == end:
            inner = self.inside[begin]
            assert isinstance(inner, _Box), "no call takes in what it puts out itself"
            inner.connect(source, target)
            return
        self.lines[begin, end] = None
        if begin >= 0 and isinstance(inner := self.inside[begin], _Box):
            inner.connect(source, None)
        if end >= 0 and isinstance(inner := self.inside[end], _Box):
            inner.connect(None, target)

    def largest(self) -> "_Box | None":
        """Return the block in it that holds the most steps, if any."""
        boxes = [each for each in self.inside if isinstance(each, _Box)]
        return max(boxes, key=lambda box: box.call.last - box.call.first, default=None)

    def part(self) -> Part:
        """Return it as a part; of one part alone that one."""
        parts = tuple(
            each.part() if isinstance(each, _Box) else _leaf(self.steps, each)
            for each in self.inside
        )
        if len(parts) == 1 and self.call.depth >= 0:
            return parts[0]
        call = self.call
        return Part(call.address, call.kind, 0, call.output_shapes, parts, tuple(self.lines))


def _is_step(block: BlockCall, parts: Sequence[BlockCall], steps: Sequence[LayerStep]) -> bool:
    """Return whether a block called no layer and so is a step itself."""
    return (
        not parts and block.first == block.last and steps[block.first - 1].address == block.address
    )


def _leaf(steps: Sequence[LayerStep], number: int) -> Part:
    step = steps[number - 1]
    return Part(step.address, step.kind, number, step.output_shapes)
