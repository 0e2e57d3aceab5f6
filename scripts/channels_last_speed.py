"""Measure what channels last in memory gain: bare passes, and the lenses that take them.

``python -m scripts.channels_last_speed 1 resnet18 squeezenet1_1``: on one thread. Both ways take
turns, and of each the best counts, in processor time: wall time on a shared machine is others'.
"""

import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from unittest.mock import patch

import torch

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.attribution import methods
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.explaining.patching import part_changes
from hookviz.hooking.channels_last import faster_model, lay_out, with_channels_last
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.synthesis import optimizing
from hookviz.types import Model, ModelInput, ignore

NAMES = (
    *("resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1"),
    *("vgg16", "densenet121", "efficientnet_b0"),
)
_TURNS = {"pass": 12, "16 images": 3, "occlusion": 2, "channels": 2, "step": 4}


def main() -> None:
    """Print a row for each network."""
    torch.set_num_threads(int(sys.argv[1]))
    print("| network |", " | ".join(_TURNS), "|")
    for name in sys.argv[2:] or NAMES:
        model = hookviz.load_model(name, weights="random")
        gains = _gains(model, prepare_input(model, "assets/samples/star.jpg"))
        print(f"| {name} |", " | ".join(f"{gain:.2f}" for gain in gains), "|", flush=True)


def _gains(model: Model, model_input: ModelInput) -> list[float]:
    """Return how many times as long each kind of work takes plainly, in the order of `_TURNS`."""
    trace, image = input_trace(model, model_input), model_input.tensor
    fast, many = faster_model(model, image), image.expand(16, -1, -1, -1).contiguous()
    side, info = image.shape[2], trace.convs[len(trace.convs) // 2]
    windows = methods.Windows((side,) * 2, (side // 4,) * 2, (side // 5,) * 2)
    with private_replica(model) as replica:
        before = forward_pass(model, replica, image)[0].double()

    def bare(images: torch.Tensor, *, faster: bool) -> None:
        which, laid_out = (fast, lay_out(images)) if faster else (model, images)
        with private_replica(which) as replica:
            forward_pass(which, replica, laid_out)

    def occluded() -> object:
        target, zeros = AttributionTarget(0), torch.zeros_like(image)
        return methods.occlusion(
            model, model_input, target, zeros, windows=windows, progress=ignore
        )

    def ablated() -> object:
        passes = part_changes.ChannelAblation(model, model_input, info)
        return passes.scores_with_each(before, ProgressReporter(None))

    def both_ways(work: Callable[[], object], module: object) -> Callable[[bool], None]:
        def run(faster: bool) -> None:
            same = patch.object(module, "faster_model", lambda model, _images: model)
            with nullcontext() if faster else same:
                work()

        return run

    def step(faster: bool) -> None:
        """One pass there and back of a picture of 128 pixels, with or without the weights so."""
        same = patch.object(optimizing, "with_channels_last", lambda model: model)
        passes = optimizing.LayerPasses(model, [None])
        with nullcontext() if faster else same, passes.on_network() as outputs:
            for _turn in range(4):
                picture = torch.zeros(1, 3, 128, 128, requires_grad=True)
                torch.autograd.grad(outputs(picture)[0].sum(), picture)

    works: list[Callable[[bool], None]] = [
        lambda faster: bare(image, faster=faster),
        lambda faster: bare(many, faster=faster),
        both_ways(occluded, methods),
        both_ways(ablated, part_changes),
        step,
    ]
    gains = [_gain(work, turns) for work, turns in zip(works, _TURNS.values(), strict=True)]
    assert with_channels_last(model).network is fast.network  # it was there all the time
    return gains


def _gain(work: Callable[[bool], None], turns: int) -> float:
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _turn in range(turns):
        for faster, taken in seconds.items():
            started = time.process_time()
            work(faster)
            taken.append(time.process_time() - started)
    return min(seconds[False]) / min(seconds[True])


if __name__ == "__main__":
    main()
