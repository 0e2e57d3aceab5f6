import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookviz.errors import SettingError, UnknownNameError
from hookviz.machine import memory
from hookviz.machine.memory import MEGABYTE
from hookviz.settings import Settings, host_names, is_own_address, read_settings

GIGABYTE = 1024 * MEGABYTE


def test_defaults_and_choices() -> None:
    assert read_settings({"PATH": "/bin"}, 64 * GIGABYTE) == Settings(cache_mb=1024, models_mb=3072)
    chosen = read_settings({"HOOKVIZ_SESSION_MB": " 12 ", "HOOKVIZ_WEIGHTS_URL": "http://x/"})
    assert (chosen.session_mb, chosen.weights_url) == (12, "http://x/")
    assert read_settings({"HOOKVIZ_CACHE_MB": "0"}, GIGABYTE).cache_mb == 128
    loaded = read_settings({"HOOKVIZ_MEMORY_MB": "800"})
    assert (loaded.memory_mb, loaded.cache_mb, loaded.models_mb) == (800, 100, 300)


def test_lines_of_ones_own_run_nowhere_unless_it_is_said() -> None:
    assert read_settings({}, GIGABYTE).code == 0
    assert read_settings({"HOOKVIZ_CODE": "1"}, GIGABYTE).code == 1
    with pytest.raises(SettingError, match="HOOKVIZ_CODE=2 is neither 0 nor 1"):
        read_settings({"HOOKVIZ_CODE": "2"}, GIGABYTE)
    with pytest.raises(SettingError, match="HOOKVIZ_HUGGING_FACE=2 is neither 0 nor 1"):
        read_settings({"HOOKVIZ_HUGGING_FACE": "2"}, GIGABYTE)


@pytest.mark.parametrize(
    ("address", "own"),
    [
        *(("localhost", True), ("127.0.0.1", True), ("127.3.2.1", True), ("::1", True)),
        *(("[::1]", True), ("0.0.0.0", False), ("192.168.0.2", False), ("", False)),  # noqa: S104
        *(("localhost.example.org", False), ("127.0.0.1.nip.io", False)),
    ],
)
def test_what_a_machine_calls_itself(address: str, own: bool) -> None:
    assert is_own_address(address) == own


@pytest.mark.parametrize(
    ("megabytes", "cache", "models"),
    [(1024, 128, 384), (4096, 512, 1536), (8192, 1024, 3072), (131072, 1024, 3072), (1, 1, 1)],
)
def test_what_nobody_chose_follows_from_the_memory(megabytes: int, cache: int, models: int) -> None:
    loaded = read_settings({}, megabytes * MEGABYTE)
    assert (loaded.cache_mb, loaded.models_mb) == (cache, models)
    chosen = read_settings({"HOOKVIZ_MODELS_MB": "77"}, megabytes * MEGABYTE)
    assert (chosen.cache_mb, chosen.models_mb) == (cache, 77)


@pytest.mark.sweep("by day of one process: tests/serving")
def test_processes_share_the_memory_and_the_cores() -> None:
    there = memory.own_memory().limit // MEGABYTE
    shared = read_settings({"HOOKVIZ_PROCESSES": str(there // 80)})  # some 80 MB for each
    assert shared.processes == there // 80
    assert 9 <= shared.cache_mb <= 10
    program = "from hookviz.serving import capacity; print(*capacity.run_plan())"
    planned = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "HOOKVIZ_RUNS": "1", "HOOKVIZ_PROCESSES": str(count)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for count in (1, memory.cores())
    ]
    assert planned == [["1", str(memory.cores()), "1"], ["1", "1", "1"]]


@pytest.mark.parametrize(
    ("variable", "value", "why"),
    [
        *[
            ("HOOKVIZ_UPLOAD_MB", value, "without it HookViz takes 50")
            for value in ("", "0", "-3", "many", "1.5", "²")
        ],
        *[
            ("HOOKVIZ_CACHE_MB", value, "or 0 for automatic; without it HookViz takes 0")
            for value in ("", "-3", "many", "1.5", "²")
        ],
        ("HOOKVIZ_LOG", "xml", 'neither "text" nor "json"'),
        ("HOOKVIZ_LOGIN", "2", "neither 0 nor 1"),
        ("HOOKVIZ_METRICS_PORT", "65536", "no port"),
        ("HOOKVIZ_CLASS_CODE", "short", "6 or more"),
        ("HOOKVIZ_HOSTS", "cnn.example.org/demo", "'cnn.example.org/demo' is no name of a host"),
        ("HOOKVIZ_PROXIES", "caddy", "'caddy' is neither a network nor an address"),
    ],
)
def test_choices_that_mean_nothing_are_named(variable: str, value: str, why: str) -> None:
    with pytest.raises(SettingError, match=f"{variable}.*{why}"):
        read_settings({variable: value})


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        ("", []),
        (":80", []),
        ("cnn.example.org, :80", []),
        ("CNN.example.org.", ["cnn.example.org."]),
        ("https://cnn.example.org:8443/", ["cnn.example.org"]),
        (" localhost,*.example.org 192.168.1.20 ", ["localhost", "*.example.org", "192.168.1.20"]),
        ("[::1]:8501", ["::1"]),
        ("*", ["*"]),
    ],
)
def test_names_of_hosts_are_read_from_what_a_proxy_calls_its_site(
    hosts: str, names: list[str]
) -> None:
    assert host_names(hosts) == names


@pytest.mark.parametrize("host", ["a b/c", "ftp://a", "a..b", "*.", "a@b", "a:123456", "-a", "é"])
def test_what_is_no_name_of_a_host_is_named(host: str) -> None:
    with pytest.raises(SettingError, match=r"HOOKVIZ_HOSTS: .* is no name of a host, such as"):
        host_names(host)


def test_the_class_code_is_in_no_text_about_the_settings() -> None:
    assert "open sesame" not in repr(read_settings({"HOOKVIZ_CLASS_CODE": "open sesame"}))
    with pytest.raises(SettingError) as caught:
        read_settings({"HOOKVIZ_CLASS_CODE": "abcde"})
    assert "abcde" not in str(caught.value)


def test_a_misspelled_setting_and_a_folder_that_is_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="HOOKVIZ_SESSION_MB"):
        read_settings({"HOOKVIZ_SESION_MB": "3"})
    assert read_settings({"HOOKVIZ_LANGUAGES": str(tmp_path)}).languages == str(tmp_path)
    with pytest.raises(SettingError, match="nowhere' is no folder"):
        read_settings({"HOOKVIZ_LANGUAGES": "nowhere"})
