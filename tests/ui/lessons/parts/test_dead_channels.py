import hookviz
from hookviz.images.samples import samples
from hookviz.ui.lessons.parts.dead_channels import PART, dead_channels
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_counts_are_those_of_plain_captures_and_the_layer_with_the_most_is_shown() -> None:
    options = with_defaults(PART, layer="first")
    facts, dead = PART.facts(star(), options), dead_channels(star(), options)
    files = sorted(samples(), key=lambda sample: sample.name != "star")
    silent: list[set[int]] = []
    for sample in files:
        maps = hookviz.capture(star().model, sample.path, "stem.relu")["stem.relu"].values
        silent.append({channel for channel, each in enumerate(maps) if not each.any()})
    assert facts["dead"] == len(silent[0])
    assert facts["always"] == len(set.intersection(*silent))
    assert facts["woken"] == facts["dead"] - facts["always"]
    assert facts["images"] == len(files) == len(samples())
    for channel in silent[0]:
        woken = {
            sample.title
            for sample, those in zip(files[1:], silent[1:], strict=True)
            if channel not in those
        }
        assert {sample.title for sample in dead.woken_by(channel)} == woken
    assert list(dead.so_far) == sorted(dead.so_far, reverse=True)
    names = [layer.name for layer in star().trace.convs]
    counts = {
        name: int(PART.facts(star(), with_defaults(PART, layer=name))["dead"]) for name in names
    }
    most = PART.facts(star(), with_defaults(PART))
    assert most["dead"] == counts[str(most["layer"])] == max(counts.values())
    assert PART.link(star(), with_defaults(PART))["layer"] == most["layer"]
