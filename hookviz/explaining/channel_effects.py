"""How much the class scores change when a channel is switched off, for all channels of layers."""

from collections.abc import Sequence

from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError
from hookviz.explaining.scoring import class_scores
from hookviz.explaining.without_channels import PassesWithout
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.language.saying import say
from hookviz.types import Model, ModelInput, Progress, ignore
from hookviz.wording import number

_MOST_WORK = 1e13  # multiply-adds: minutes on a few cores


def channel_effects(
    model: Model, model_input: ModelInput, layers: Sequence[str], progress: Progress = ignore
) -> dict[str, Tensor]:
    """The length of the change of all class scores without each channel, by layer.

    ``‖scores(channel c at 0) − scores‖₂``, float64 ``(C,)`` on the CPU. The channel is written
    over at the convolution's own output, before any batch norm. A pass of the part behind the
    layer is made for every channel, many at once where the network lets them.

    Args:
        model: the model.
        model_input: the image whose scores are looked at.
        layers: conv layers by name.
        progress: told the share done; what it raises ends the run.

    Raises:
        ModelError: it would take more than 10¹³ multiply-adds, or the network can't go on without
            a channel or puts out no class scores.
    """
    trace = input_trace(model, model_input)
    infos = [info for info in trace.layers if info.name in set(layers)]
    work = sum(
        info.output_shape[0]
        * sum(later.multiply_adds * later.calls for later in trace.layers[info.index :])
        for info in infos
    )
    channels = sum(info.output_shape[0] for info in infos)
    if work > _MOST_WORK:
        raise ModelError(
            say(
                "To switch {channels:,} channels of {model} off one by one takes {multiply_adds} "
                "multiply-adds, more than {limit}. Choose one layer alone, a smaller "
                "input, or another method.",
                channels=channels,
                model=model.title,
                multiply_adds=number(work),
                limit=number(_MOST_WORK),
            )
        )
    effects, done, told = {}, 0, 0.0

    def report(share: float) -> None:
        nonlocal told
        told = max(told, (done + share * count) / channels)  # a plainer way begins anew
        progress(told)

    with private_replica(model) as replica:
        before = class_scores(model, replica, model_input.tensor)[0].cpu().double()
    for info in infos:
        count = info.output_shape[0]
        after = PassesWithout(model, model_input, info).every_channel(
            before, ProgressReporter(report)
        )
        effects[info.name] = (after - before).norm(dim=1)
        done += count
    return effects
