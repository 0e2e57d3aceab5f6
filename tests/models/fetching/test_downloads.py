"""Sharing, cancelling and keeping of downloads, against a real server on loopback."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from hookviz.errors import WeightsError
from hookviz.models.fetching.downloads import Download, fetch, matches_name, start
from hookviz.models.fetching.transfers import RetryLimits, TransferStatus
from hookviz.wording import byte_size
from scripts.children import child
from tests.cli.command import ROOT
from tests.weights_server import Answer, WeightsServer, hashed_name, random_bytes

# a stall that is longer than any test: whatever ends in time was not ended by it
CALM = RetryLimits(stall=120.0, backoff=0.01, report=0.01, interest=120.0)
BODY = random_bytes(200_000)
NAME = hashed_name(BODY)
HALF = 100_000
HELD = Answer(hold_after=HALF)  # until the test opens the server's gate


class LeaveError(BaseException):
    """As Streamlit's rerun and stop: not an Exception."""


def until(condition: Callable[[], bool]) -> None:
    """Waits for it, for a minute at most."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def transfer_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("download ")]


def threads_end() -> None:
    """Waits until no transfer is left."""
    for thread in transfer_threads():
        thread.join(30)
    assert transfer_threads() == []


def half_way(server: WeightsServer, path: Path, **options: RetryLimits) -> Download:
    """A download of which half has come, and the rest waits for the gate."""
    download = start(server.add(NAME, BODY, HELD, Answer()), path, **{"limits": CALM, **options})
    until(lambda: download.progress.received == HALF)
    return download


def test_starting_what_is_there_is_finished_at_once(server: WeightsServer, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(BODY)
    download = start(server.add(NAME, BODY), path)
    assert download.finished
    assert download.existed
    assert download.progress.share == 1
    assert download.wait() == path
    assert download.cancel("me") is False
    assert server.requests == []
    (tmp_path / "plain.pth").write_bytes(BODY)
    assert matches_name(path) is True
    path.write_bytes(BODY[:-1])
    assert matches_name(path) is False
    assert matches_name(tmp_path / "plain.pth") is None
    with pytest.raises(WeightsError, match=r"net-0123abcd\.pth can't be read: No such file"):
        matches_name(tmp_path / "net-0123abcd.pth")


def test_only_a_hidden_part_is_there_until_it_is_whole_and_others_come_beside_it(
    server: WeightsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    umask = os.umask(0o022)
    try:
        download = half_way(server, tmp_path / NAME, limits=replace(CALM, interest=0.0))
        assert not download.finished
        (part,) = names(tmp_path)
        assert part.startswith(f".{NAME}.")
        assert part.endswith(".part")
        monkeypatch.chdir(tmp_path)
        assert start(download.url, Path(NAME)) is download  # a relative path is the same file
        other = random_bytes(5000, seed=2)
        name = hashed_name(other)
        beside = tmp_path / "beside"
        assert fetch(server.add(name, other), beside / name).read_bytes() == other
        assert not download.finished
        server.gate.set()
        until(lambda: download.finished)  # nobody needs to look
    finally:
        os.umask(umask)
    assert download.wait() == tmp_path / NAME
    assert names(tmp_path) == sorted(["beside", NAME])
    assert download.error is None
    assert not download.existed
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644  # as far as the umask says


@pytest.mark.parametrize("length", ["known", "chunked"])
def test_progress_grows_and_is_complete(server: WeightsServer, tmp_path: Path, length: str) -> None:
    told: list[TransferStatus] = []

    def report(progress: TransferStatus) -> None:
        told.append(progress)
        if progress.received == HALF:
            server.gate.set()

    answer = Answer(hold_after=HALF, pause=0.02, length=length)  # type: ignore[arg-type]
    fetch(server.add(NAME, BODY, answer), tmp_path / NAME, report, limits=CALM)
    received = [progress.received for progress in told]
    assert received == sorted(received)
    assert len(set(received)) > 3
    assert {progress.file for progress in told} == {NAME}
    (middle, *_) = [progress for progress in told if progress.received == HALF]
    assert middle.total == (len(BODY) if length == "known" else None)
    assert middle.bytes_per_second > 0
    assert (told[-1].received, told[-1].total) == (len(BODY), len(BODY))
    assert told[-1].share == 1


def test_progress_says_what_it_waits_for(server: WeightsServer, tmp_path: Path) -> None:
    patient = replace(CALM, backoff=120.0, longest_pause=120.0)
    url = server.add(NAME, BODY, Answer(status=500))
    download = start(url, tmp_path / NAME, limits=patient)
    until(lambda: "trying again" in download.progress.text)
    assert "500 Internal Server Error" in download.progress.text
    assert download.cancel("me")
    threads_end()


def test_all_who_ask_share_one_transfer(server: WeightsServer, tmp_path: Path) -> None:
    count = 8
    url = server.add(NAME, BODY, HELD)
    all_wait = threading.Barrier(count, action=server.gate.set, timeout=30)
    first = threading.local()

    def ask(_: int) -> Path:
        def report(progress: TransferStatus) -> None:
            if not hasattr(first, "told"):
                first.told = True
                all_wait.wait()

        return fetch(url, tmp_path / NAME, report, limits=CALM)

    with ThreadPoolExecutor(count) as pool:
        paths = list(pool.map(ask, range(count)))
    assert paths == [tmp_path / NAME] * count
    assert paths[0].read_bytes() == BODY
    assert len(server.requests) == 1


def test_every_waiter_gets_an_error_of_its_own(server: WeightsServer, tmp_path: Path) -> None:
    url = server.add(NAME, BODY, Answer(hold_after=HALF, body=random_bytes(200_000, seed=1)))
    download = start(url, tmp_path / NAME, limits=CALM)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(download.wait) for _ in range(3)]
        server.gate.set()
        errors = [waiter.exception(30) for waiter in waiting]
    assert len({id(error) for error in errors}) == 3
    assert {str(error) for error in errors} == {str(download.error)}
    assert all(isinstance(error, WeightsError) for error in errors)
    assert all(error.__cause__ is download.error for error in errors if error is not None)
    assert download.finished
    assert names(tmp_path) == []
    again = start(server.add(NAME, BODY), tmp_path / NAME)  # after a failure it begins anew
    assert again is not download
    assert again.wait().read_bytes() == BODY


def test_cancelling_in_the_middle_leaves_nothing_behind(
    server: WeightsServer, tmp_path: Path
) -> None:
    download = half_way(server, tmp_path / NAME)
    download.watch("me")
    assert download.cancel("me") is True
    assert names(tmp_path) == []  # at once, though the server holds back
    assert download.finished
    assert download.cancelled
    with pytest.raises(WeightsError, match=f"{NAME} .200.0 kB. was cancelled"):
        download.wait()
    assert download.cancel("me") is False
    threads_end()  # which are woken by it: the stall would take minutes
    assert names(tmp_path) == []
    assert fetch(download.url, tmp_path / NAME).read_bytes() == BODY


def test_a_new_one_can_begin_while_the_cancelled_one_still_ends(
    server: WeightsServer, tmp_path: Path
) -> None:
    url = server.add(NAME, BODY, Answer(mute=True), Answer())
    # nothing can wake it before the server has answered
    mute = start(url, tmp_path / NAME, limits=CALM)
    until(lambda: len(server.requests) == 1)
    assert mute.cancel("me")
    assert fetch(url, tmp_path / NAME).read_bytes() == BODY
    assert names(tmp_path) == [NAME]
    server.close()
    threads_end()
    assert names(tmp_path) == [NAME]


def test_who_has_not_watched_for_a_while_does_not_count(
    server: WeightsServer, tmp_path: Path
) -> None:
    url = server.add(NAME, BODY, HELD)
    limits = replace(CALM, interest=0.5)
    download = start(url, tmp_path / NAME, who="a tab that is closed now", limits=limits)
    assert download.cancel("me") is False  # who starts it watches from the start
    assert start(url, tmp_path / NAME, who="she") is download
    assert download.cancel("she") is False
    until(lambda: download.cancel("she"))
    assert download.cancelled


@pytest.mark.parametrize("is_raised", [False, True])
def test_cancelling_and_a_report_that_raises_leave_it_to_others_who_wait(
    server: WeightsServer, tmp_path: Path, is_raised: bool
) -> None:
    def leave(progress: TransferStatus) -> None:
        raise LeaveError

    download = half_way(server, tmp_path / NAME, limits=replace(CALM, interest=0.0))
    waits = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waiter = pool.submit(download.wait, lambda _: waits.set())
        assert waits.wait(30)
        if is_raised:
            with pytest.raises(LeaveError):
                fetch(download.url, tmp_path / NAME, leave, limits=CALM)
        else:
            assert download.cancel("me") is False
        assert not download.finished
        server.gate.set()
        assert waiter.result(30).read_bytes() == BODY
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", [LeaveError, KeyboardInterrupt, ValueError])
def test_a_report_that_raises_ends_it(
    server: WeightsServer, tmp_path: Path, kind: type[BaseException]
) -> None:
    def report(progress: TransferStatus) -> None:
        if progress.received == HALF:
            raise kind("enough")

    url = server.add(NAME, BODY, HELD, Answer())
    with pytest.raises(kind, match="enough"):
        fetch(url, tmp_path / NAME, report, limits=CALM)
    assert names(tmp_path) == []
    assert fetch(url, tmp_path / NAME).read_bytes() == BODY


def test_coming_and_going_leaves_only_the_files(server: WeightsServer, tmp_path: Path) -> None:
    """Six come at once to each of twenty files, and some of them leave at some moment."""
    rounds, people = 20, 6
    url = server.add("net.pth", BODY, Answer(pause=0.002))
    together = threading.Barrier(people, timeout=60)

    def ask(person: int) -> list[str]:
        outcomes = []
        for turn in range(rounds):
            place = random_bytes(1, seed=person * rounds + turn)[0] * 1500
            leaves = (person + turn) % 3 > 0 or turn % 4 == 0  # now and then everybody does

            def report(progress: TransferStatus, place: int = place, leaves: bool = leaves) -> None:
                if leaves and progress.received >= place:
                    raise LeaveError

            together.wait()
            try:
                path = fetch(url, tmp_path / f"net{turn}.pth", report, limits=CALM)
                outcomes.append("whole" if path.read_bytes() == BODY else "broken")
            except LeaveError:
                outcomes.append("left")
        return outcomes

    with ThreadPoolExecutor(people) as pool:
        outcomes = [one for all_ in pool.map(ask, range(people)) for one in all_]
    threads_end()
    assert set(outcomes) == {"whole", "left"}
    assert not [name for name in names(tmp_path) if name.endswith(".part")]
    assert all(path.read_bytes() == BODY for path in tmp_path.iterdir())


@contextmanager
def as_nobody() -> Iterator[None]:
    """For root, who may write everywhere, the rights of somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_can_not_be_written_or_read_or_is_none(
    server: WeightsServer, tmp_path: Path
) -> None:
    url = server.add(NAME, BODY)
    (tmp_path / "hub").write_bytes(b"")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0)
        with as_nobody(), pytest.raises(WeightsError, match=f"{folder}: Permission denied"):
            start(url, Path(folder, NAME))
        with pytest.raises(WeightsError, match=f"can't be kept in the folder {tmp_path}/hub: "):
            fetch(url, tmp_path / "hub" / NAME)
        assert server.requests == []
        Path(folder).chmod(0o555)
        with as_nobody(), pytest.raises(WeightsError) as caught:
            fetch(url, Path(folder, NAME), limits=CALM)
        Path(folder).chmod(0o700)
        assert names(Path(folder)) == []
    expected = f"{NAME} can't be kept in the folder {folder}: Permission denied."
    assert str(caught.value) == expected
    assert caught.value.__cause__ is not None
    assert isinstance(caught.value.__cause__.__cause__, PermissionError)
    (tmp_path / NAME).mkdir()
    with pytest.raises(WeightsError, match="Is a directory"):
        fetch(url, tmp_path / NAME)
    assert names(tmp_path) == sorted(["hub", NAME])


def test_a_disk_that_fills_up_in_the_middle(server: WeightsServer, tmp_path: Path) -> None:
    url = server.add(NAME, BODY)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, hard))
    try:
        with pytest.raises(WeightsError) as caught:
            fetch(url, tmp_path / NAME, limits=CALM)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    expected = f"{NAME} (200.0 kB) can't be kept in the folder {tmp_path}: File too large."
    assert str(caught.value) == expected
    assert names(tmp_path) == []
    assert len(server.requests) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB, where there is one to be had."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if not shutil.which("mount"):
        pytest.skip("no disk can be mounted here")
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("nobody but root may mount a disk")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("length", ["known", "chunked"])
def test_a_disk_that_is_full_is_told_and_once_there_is_room_it_comes(
    server: WeightsServer, small_disk: Path, length: Literal["known", "chunked"]
) -> None:
    url = server.add(NAME, BODY, Answer(length=length))
    other = small_disk / "other"
    other.write_bytes(bytes(150_000))
    with pytest.raises(WeightsError) as caught:
        fetch(url, small_disk / NAME, limits=CALM)
    text = str(caught.value)
    assert f"can't be kept in the folder {small_disk}: " in text
    assert ("(200.0 kB)" in text) == (length == "known")
    room = shutil.disk_usage(small_disk).free
    assert text.endswith(f": only {byte_size(room)} were free there.")
    assert 90_000 < room < 120_000
    assert names(small_disk) == ["other"]
    other.unlink()
    assert fetch(url, small_disk / NAME, limits=CALM).read_bytes() == BODY


def test_what_crashed_processes_left_is_swept_away(server: WeightsServer, tmp_path: Path) -> None:
    old, young = tmp_path / f".{NAME}.0ld.part", tmp_path / f".{NAME}.y0ung.part"
    others = tmp_path / ".other-0123abcd.pth.0ld.part"
    for path in (old, young, others):
        path.write_bytes(b"")
    for path in (old, others):
        os.utime(path, (time.time() - 100_000,) * 2)
    fetch(server.add(NAME, BODY), tmp_path / NAME)
    assert names(tmp_path) == sorted([NAME, young.name, others.name])


PROGRAM = """
import sys, time
from pathlib import Path
from hookviz.models.fetching.downloads import RetryLimits, fetch, start

how, url, path = sys.argv[1:]
limits = RetryLimits(stall=120.0, report=0.01)
if how == "exit":
    download = start(url, Path(path), limits=limits)
    while download.progress.received == 0:
        time.sleep(0.01)
    print("half", flush=True)
else:
    fetch(url, Path(path), lambda progress: progress.received and print("half", flush=True))
"""


@pytest.mark.parametrize("how", ["exit", "interrupt"])
def test_the_end_of_the_process_leaves_nothing_behind(
    server: WeightsServer, tmp_path: Path, how: str
) -> None:
    url = server.add(NAME, BODY, HELD)
    with child(
        [sys.executable, "-c", PROGRAM, how, url, str(tmp_path / NAME)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == "half\n"
        if how == "interrupt":
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=40)  # the server holds back for longer
    assert process.returncode == (0 if how == "exit" else -signal.SIGINT), errors
    assert ("KeyboardInterrupt" in errors) == (how == "interrupt")
    assert names(tmp_path) == []
