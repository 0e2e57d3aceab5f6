"""Dead channels, counted once more over the samples."""

import hookviz
from hookviz.images.samples import samples
from hookviz.ui.lessons.parts.dead_channels import PART, dead_channels
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_counts_are_those_of_plain_captures() -> None:
    facts = PART.facts(star(), with_defaults(PART, layer="first"))
    files = sorted(samples(), key=lambda sample: sample.name != "star")
    silent: list[set[int]] = []
    for sample in files:
        maps = hookviz.capture(star().model, sample.path, "stem.relu")["stem.relu"].values
        silent.append({channel for channel, each in enumerate(maps) if not each.any()})
    assert facts["dead"] == len(silent[0])
    assert facts["always"] == len(set.intersection(*silent))
    assert facts["woken"] == facts["dead"] - facts["always"]
    assert facts["images"] == len(files) == len(samples())
    dead = dead_channels(star(), with_defaults(PART, layer="first"))
    for channel in silent[0]:
        woken = {
            sample.title
            for sample, those in zip(files[1:], silent[1:], strict=True)
            if channel not in those
        }
        assert {sample.title for sample in dead.woken_by(channel)} == woken
    assert list(dead.so_far) == sorted(dead.so_far, reverse=True)


def test_by_default_it_is_the_layer_with_the_most() -> None:
    counts = {}
    for layer in star().trace.convs:
        options = with_defaults(PART, layer=layer.name)
        counts[layer.name] = PART.facts(star(), options)["dead"]
    most = PART.facts(star(), with_defaults(PART))
    assert most["dead"] == max(counts.values(), key=int)
    assert counts[str(most["layer"])] == most["dead"]
    assert PART.link(star(), with_defaults(PART))["layer"] == most["layer"]
