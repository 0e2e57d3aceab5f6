"""Choose the channel on which the page opens, for each photograph in the box.

Of SqueezeNet's channels it is the one that answers most to what a person looks at: the cat's eyes,
the cup, a face. ``python -m scripts.openings`` writes assets/openings.json.
"""

import json
from collections.abc import Mapping, Sequence

import hookviz
from hookviz.images.samples import samples
from hookviz.lenses.contract.regions import Region
from hookviz.settings import ASSETS
from hookviz.types import Model
from scripts.eye_filter import EYES, part_filter

PARTS: Mapping[str, tuple[str, Sequence[Region]]] = {
    "cat": ("eyes", EYES),
    "coffee": ("cup", (Region("rect:0.14,0,0.84,0.64"),)),
    "astronaut": ("face", (Region("rect:0.27,0.02,0.6,0.36"),)),
    "rocket": ("rocket", (Region("rect:0.45,0.25,0.56,0.98"),)),
    "camera": ("head", (Region("rect:0.28,0.07,0.56,0.4"),)),
}
"""What a person looks at, and where that is in what a network sees: the sample's middle square."""


def openings(model: Model) -> dict[str, dict[str, str | int]]:
    """Return layer and channel for each sample, and what the channel answers to."""
    chosen: dict[str, dict[str, str | int]] = {}
    classes = hookviz.list_layers(model)[-1].name  # whose channels are classes
    for sample in samples():
        if sample.name not in PARTS:
            continue
        part, regions = PARTS[sample.name]
        best = part_filter(model, sample.path, regions, besides={classes})
        chosen[sample.name] = {"layer": best.layer, "channel": best.channel, "part": part}
    return chosen


def main() -> None:
    """Write the file."""
    chosen = {"squeezenet": openings(hookviz.load_model("squeezenet"))}
    (ASSETS / "openings.json").write_text(f"{json.dumps(chosen, indent=2)}\n", "utf-8")


if __name__ == "__main__":
    main()
