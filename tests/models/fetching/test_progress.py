import threading

import pytest

from hookviz.models.fetching.progress import Meter, Progress, format_bytes


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress("f", 12_300_000, 87_300_000, 4.5e6), "12.3 of 87.3 MB · 4.5 MB/s"),
        (Progress("f", 300_000, 87_300_000, 52_000), "0.3 of 87.3 MB · 52.0 kB/s"),
        (Progress("f", 12_300_000, None, 0), "12.3 MB · 0 bytes/s"),
        (Progress("f", 70_001, 200_000, 0, "connecting"), "70.0 of 200.0 kB · connecting"),
        (Progress("f", 5, 10, 1), "5 of 10 bytes · 1 bytes/s"),
    ],
)
def test_the_text_is_in_a_persons_units(progress: Progress, text: str) -> None:
    assert progress.text == text


def test_the_share() -> None:
    assert Progress("f", 1, 4, 0).share == 0.25
    assert Progress("f", 1, None, 0).share is None
    assert Progress("f", 0, 0, 0).share is None


def test_the_title_has_the_size_once_it_is_known() -> None:
    assert Progress("net.pth", 0, None, 0).title == "net.pth"
    assert Progress("net.pth", 0, 87_306_240, 0).title == "net.pth (87.3 MB)"


def test_bytes_in_words() -> None:
    assert [format_bytes(count) for count in (7, 12_000, 87_306_240)] == [
        "7 bytes",
        "12.0 kB",
        "87.3 MB",
    ]


def test_a_meter_reads_what_it_was_told() -> None:
    meter = Meter("net.pth")
    assert meter.read() == Progress("net.pth", 0, None, 0.0)
    meter.expect(1000)
    meter.count(600)
    meter.note("connecting")
    read = meter.read()
    assert (read.received, read.total, read.note) == (600, 1000, "connecting")
    # 600 bytes in a moment: over at least a tenth of a second, so no absurd figure
    assert 0 < read.bytes_per_second <= 6000


def test_a_stall_shows_in_the_speed() -> None:
    now = 100.0
    meter = Meter("net.pth", clock=lambda: now)
    for second in range(1, 11):
        now = 100.0 + second
        meter.count(second * 1000)
    assert meter.read().bytes_per_second == pytest.approx(1000, rel=0.01)
    now += 97
    assert meter.read().bytes_per_second < 50


def test_beginning_anew_is_no_negative_speed() -> None:
    now = 100.0
    meter = Meter("net.pth", clock=lambda: now)
    for received in (5000, 0, 100):
        now += 1
        meter.count(received)
    assert meter.read() == Progress("net.pth", 100, None, 100.0)


def test_a_meter_can_be_read_while_it_is_told() -> None:
    meter = Meter("net.pth")

    def tell() -> None:
        for count in range(20_000):
            meter.count(count)

    told = threading.Thread(target=tell)
    told.start()
    seen = [meter.read().received for _ in range(2000)]
    told.join()
    assert seen == sorted(seen)
    assert meter.read().received == 19_999
