"""Changed files of every format give an image or an `ImageError`; and the fuzzer does its work."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hookviz.images import reading
from hookviz.settings import Settings
from scripts import fuzz, fuzz_seeds
from tests.test_threats import measured

SEEDS = fuzz_seeds.seeds()
MOST_PIXELS = 4096

# What the fuzzer found, and what was wrong.
FOUND = {
    # Filled a picture of 4105×27392 pixels, in which the frame would be cleared away later.
    "a GIF frame to clear": bytes.fromhex(
        "47494638396107000600000000bec4814adf668475493e6b7aba3971920c9c3f"
        "25ad2e1a4221f904ff000002002c0100000b08100060c08003050e0030402000"
        "420206000c280008290085061c0a2850c040c68b0201000000003b"
    ),
}


@pytest.fixture(scope="module", autouse=True)
def few_pixels() -> Iterator[None]:
    """The fuzzer's own limit, so that no changed size takes long."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (reading, fuzz):
            patch.setattr(module, "settings", lambda: Settings(max_pixels=MOST_PIXELS))
        yield


def test_every_seed_is_an_image_and_left_as_it_is_by_the_repair() -> None:
    for name, data in SEEDS.items():
        image = fuzz.judge(data)
        assert image is not None, name
        assert {image.height, image.width} in ({6, 7}, {2, 3})
        assert fuzz_seeds.repaired(data) == data, name


@given(st.data())
@hypothesis_settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_changed_files_are_images_or_refused(data: st.DataObject) -> None:
    changed = bytearray(SEEDS[data.draw(st.sampled_from(sorted(SEEDS)))])
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(changed)))
        patch = data.draw(st.binary(max_size=8))
        match data.draw(st.sampled_from(["write", "insert", "remove", "repeat", "cut"])):
            case "write":
                changed[start : start + len(patch)] = patch
            case "insert":
                changed[start:start] = patch
            case "remove":
                del changed[start : start + len(patch)]
            case "repeat":
                changed[start:start] = changed[start : start + 40]
            case "cut":
                del changed[start:]
    whole = data.draw(st.booleans())
    fuzz.judge(fuzz_seeds.repaired(bytes(changed)) if whole else bytes(changed))


@given(head=st.sampled_from(sorted(SEEDS)), tail=st.sampled_from(sorted(SEEDS)), at=st.floats(0, 1))
@hypothesis_settings(max_examples=200, deadline=None)
def test_two_files_in_one_are_images_or_refused(head: str, tail: str, at: float) -> None:
    place = int(at * len(SEEDS[head]))
    fuzz.judge(fuzz_seeds.repaired(SEEDS[head][:place] + SEEDS[tail][place:]))


def test_what_the_fuzzer_found_is_refused_without_taking_memory() -> None:
    for file in measured("image", FOUND, HOOKVIZ_MAX_PIXELS=str(MOST_PIXELS)):
        assert "'bomb.img'" in file.said, file
        assert file.megabytes < 16, file
        assert file.seconds < 2, file
