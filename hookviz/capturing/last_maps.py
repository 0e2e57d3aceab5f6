"""Find the module that puts out a network's last maps: those that the scores are read off."""

from collections.abc import Container

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.types import TOKENS, ActivationKey

IDLE = ("Dropout", "Dropout2d", "Identity")
"""Kinds of layers that pass on what they are given, outside of training."""


def last_maps(trace: LayerTrace, among: Container[str]) -> str | None:
    """Return the module that puts out the last maps of several cells, before the classes' own.

    What a network computes between modules, such as the sum with a shortcut or several maps put
    together, shows in what a block puts out: there it is the block, of a ResNet ``layer4.1`` and of
    a SqueezeNet ``features.12``. Where a block only returns what a module in it did, it is that
    module; where that one runs more than once, the innermost block around it. Of a transformer it
    is the block whose tokens the last one is given: behind that one the class token alone may be
    read. Of a detector it is what its backbone puts out before the pyramid: of what comes later one
    box reads one level, and another one another.

    Args:
        trace: the network.
        among: the modules that it may be.

    Returns:
        Its name; None where no module among them puts these maps out, by itself and as its only
        ones.
    """
    calls = list(trace.turns)
    read = trace.turns.get((_last_tokens(trace), 0), -1)
    put_out = {
        (at.layer, at.call)
        for addresses in trace.map_outputs.values()
        for at in addresses
        if len(trace.shapes[at]) == 3 and min(trace.shapes[at][1:]) > 1
        # Of those behind them the class token alone may be read.
        if trace.layouts[at].order != TOKENS or trace.turns[at.layer, at.call] <= read
    }
    turns = range(min(_turn_of_classes(trace), _turn_of_levels(trace)))
    turn = next((turn for turn in reversed(turns) if calls[turn] in put_out), None)
    if turn is None:
        return None
    same = [calls[turn][0]]  # modules that return the very same maps, the innermost last
    while turn in trace.passed_on:
        turn -= 1
        same.append(calls[turn][0])
    idle = {layer.name for layer in trace.maps if layer.kind in IDLE}
    named = [
        name
        for name in same
        if name in among
        and trace.map_outputs.get(name) == (ActivationKey(name),)
        and name not in idle
    ]
    return named[-1] if named else None


def _last_tokens(trace: LayerTrace) -> str:
    """Return the block whose tokens a transformer's last block is given; empty without one.

    Blocks of one class that stand beside each other and put out tokens are a transformer's.
    """
    parts = {layer.name for layer in trace.layers}
    blocks: dict[tuple[str, str], list[str]] = {}
    for layer in trace.maps:
        if layer.layout == TOKENS and layer.name not in parts:
            around = layer.name.rpartition(".")[0]
            blocks.setdefault((around, layer.kind), []).append(layer.name)
    rows = [row for row in blocks.values() if len(row) > 1]
    return max(rows, key=lambda row: trace.turns[row[-1], 0])[-2] if rows else ""


def _turn_of_levels(trace: LayerTrace) -> int:
    """Return at which turn a detector's backbone returns, as torchvision calls it; past all else.

    A detector puts out boxes, as many as it finds, and no row for each image.
    """
    if trace.scores or trace.keeps_batch:
        return len(trace.sequence)
    names = [name for name in trace.calls if f".{name}".endswith((".backbone.body", ".backbone"))]
    return min((trace.turns[name, 0] for name in names), default=len(trace.sequence))


def _turn_of_classes(trace: LayerTrace) -> int:
    """Return at which turn the classes' own maps return; past all where there are none."""
    if len(trace.hidden) == len(trace.layers):
        return len(trace.sequence)
    return trace.turns[trace.layers[len(trace.hidden)].name, 0]
