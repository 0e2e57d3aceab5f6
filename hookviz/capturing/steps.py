"""Find the steps between a convolution and the next one: batch norm, activation, pooling."""

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.types import UNKNOWN, ActivationKey


def steps_after(trace: LayerTrace, layer: str) -> tuple[ActivationKey, ...]:
    """Return the calls of layers between a conv layer's first call and the next conv layer's.

    Those that put out maps, ``(C, H, W)``, of as many channels: batch norm, activation, pooling,
    dropout, as the pass runs them, be they modules or functions. What a network computes between
    them, such as the sum with a shortcut, shows in the next of them. Of a linear layer they are
    those that put their channels last, as it does, up to the next layer of weights.
    """
    layers = {info.name: info for info in trace.listed}
    last = trace.layouts.get(ActivationKey(layer), UNKNOWN).last
    ends = {info.name for info in (trace.convs_and_linears if last else trace.convs)}
    if (layer, 0) not in trace.order or len(layers[layer].output_shape) != 3:
        return ()
    calls = list(trace.order)
    steps = []
    for name, call in calls[trace.order[layer, 0] + 1 :]:
        if name in ends:
            break
        step = ActivationKey(name, call)
        shape = trace.shapes.get(step, ()) if name in layers else ()
        is_alike = trace.layouts.get(step, UNKNOWN).last == last
        if len(shape) == 3 and shape[0] == layers[layer].output_shape[0] and is_alike:
            steps.append(step)
    return tuple(steps)
