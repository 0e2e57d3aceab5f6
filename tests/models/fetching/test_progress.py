import threading

import pytest

from hookviz.models.fetching.progress import Meter, TransferStatus


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (TransferStatus("f", 12_300_000, 87_300_000, 4.5e6), "12.3 of 87.3 MB · 4.5 MB/s"),
        (TransferStatus("f", 300_000, 87_300_000, 52_000), "0.3 of 87.3 MB · 52.0 kB/s"),
        (TransferStatus("f", 12_300_000, None, 0), "12.3 MB · 0 bytes/s"),
        (TransferStatus("f", 70_001, 200_000, 0, "connecting"), "70.0 of 200.0 kB · connecting"),
        (TransferStatus("f", 5, 10, 1), "5 of 10 bytes · 1 bytes/s"),
    ],
)
def test_the_text_is_in_a_persons_units(status: TransferStatus, text: str) -> None:
    assert status.text == text


def test_the_share() -> None:
    assert TransferStatus("f", 1, 4, 0).share == 0.25
    assert TransferStatus("f", 1, None, 0).share is None
    assert TransferStatus("f", 0, 0, 0).share is None


def test_the_title_has_the_size_once_it_is_known() -> None:
    assert TransferStatus("net.pth", 0, None, 0).title == "net.pth"
    assert TransferStatus("net.pth", 0, 87_306_240, 0).title == "net.pth (87.3 MB)"


def test_a_meter_reads_what_it_was_told() -> None:
    meter = Meter("net.pth")
    assert meter.read() == TransferStatus("net.pth", 0, None, 0.0)
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
    assert meter.read() == TransferStatus("net.pth", 100, None, 100.0)


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
