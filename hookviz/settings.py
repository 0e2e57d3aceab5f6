"""Read, check and document every `HOOKVIZ_*` environment variable."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

from hookviz.errors import SettingError, UnknownNameError, shorten
from hookviz.machine import memory
from hookviz.machine.memory import MEGABYTE

__all__ = ["ASSETS", "MEGABYTE", "Settings", "read_settings", "settings"]

_PACKAGE = Path(__file__).resolve().parent
ASSETS = next(
    folder for folder in (_PACKAGE / "assets", _PACKAGE.parent / "assets") if folder.is_dir()
)
"""Weights and samples that ship with HookViz: in the wheel, or beside the package in a checkout."""


def _none_of(meaning: str) -> Any:
    """Return a field for a number that may be 0, and what 0 stands for."""
    return field(default=0, metadata={"zero": meaning})


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a process, each read from ``HOOKVIZ_`` + its name in capitals.

    Attributes:
        max_pixels: images that decode to more pixels than this are refused.
        upload_mb: the largest file that can be uploaded, in megabytes.
        checkpoint_mb: the largest checkpoint that can be uploaded, in megabytes.
        uploads: how many files one session may have uploaded.
        uploads_mb: megabytes that one session's uploaded files may have together.
        memory_mb: megabytes that the process may use; 0 for what its control group or the machine
            has.
        session_mb: megabytes of activations that one session keeps.
        cache_mb: megabytes of activations that all sessions of the process keep together; 0 for
            an eighth of the memory, at most 1024.
        models_mb: megabytes of loaded models that all sessions share; 0 for three eighths of the
            memory, at most 3072. The largest model of the catalog takes 2,460.
        device: what networks compute on: ``cpu``, ``cuda``, ``cuda:1``, ``mps``, or ``auto`` for
            the fastest there is; ``hookviz run --device`` sets it.
        gpu_mb: megabytes of the GPU's memory that the process may use; 0 for all.
        max_input: the largest side in pixels that an image may have as a network's input.
        runs: how many runs compute at once, the others wait; 0 for what cores and memory carry.
        threads: processors that one run computes on; 0 for the cores shared among the runs.
        processes: servers that share the machine's cores and memory; ``hookviz run --processes``
            sets it. All other numbers are of one server.
        run_seconds: a run that takes longer is ended.
        live: how many streams of a camera's frames there may be at once; 0 for none.
        classes: how many classes there may be at once; 0 for none.
        server: which of several servers this is, from 0; ``hookviz run --processes`` sets it.
        weights_url: a mirror that serves torchvision's weights under the same file names.
        model: ``package.module:factory`` of a network to list in the app beside the catalog.
        start: name of the model that the page starts with where its weights are on this machine;
            else, and where it is empty, that is the first one in the box.
        index: a file that ``hookviz features -o`` wrote, whose images the lens Embedding looks
            through.
        atlas: what ``hookviz atlas`` made, to show beside the channels of its network; several are
            separated as in ``PATH``.
        languages: a folder with more languages of the page, a PO file each (`hookviz.language`).
        lessons: a folder with lessons of a teacher's own, shown after ours.
        metrics_port: a port with ``/metrics`` for Prometheus; 0 for none.
        metrics_address: where that port listens; this machine alone unless it is set.
        log: ``text`` for warnings and errors, ``json`` for a line of JSON for every run too.
        code: 1 lets the lines of lessons' scripts be edited and run by who opens the page on the
            server's own machine; ``hookviz run`` sets it on an address of this machine alone.
        hugging_face: 1 lists the models in this machine's Hugging Face cache to everybody who opens
            the page; ``hookviz run`` sets it on an address of this machine alone.
        login: 1 asks everybody to log in by OpenID Connect, as ``secrets.toml`` says; 0 does not.
        class_code: asked of everybody once a session; nobody is asked where it is empty.
        hosts: names under which the app is opened, as `host_names` reads them; empty for any.
        proxies: proxies whose ``X-Forwarded-For`` is believed, as `networks` reads them; empty for
            none.
    """

    max_pixels: int = 100_000_000
    upload_mb: int = 50
    checkpoint_mb: int = 600
    uploads: int = 300
    uploads_mb: int = 700
    memory_mb: int = _none_of("all that there is")
    session_mb: int = 256
    cache_mb: int = _none_of("automatic")
    models_mb: int = _none_of("automatic")
    device: str = "cpu"
    gpu_mb: int = _none_of("all that there is")
    max_input: int = 1024
    runs: int = _none_of("automatic")
    threads: int = _none_of("automatic")
    processes: int = 1
    run_seconds: int = 120
    live: int = field(default=20, metadata={"zero": "none"})
    classes: int = field(default=20, metadata={"zero": "none"})
    server: int = _none_of("the first")
    weights_url: str = ""
    model: str = ""
    start: str = ""
    index: str = ""
    atlas: str = ""
    languages: str = ""
    lessons: str = ""
    metrics_port: int = _none_of("off")
    metrics_address: str = "127.0.0.1"
    log: str = "text"
    code: int = _none_of("off")
    hugging_face: int = _none_of("off")
    login: int = _none_of("off")
    class_code: str = field(default="", repr=False)
    hosts: str = ""
    proxies: str = ""

    @property
    def server_number(self) -> int | None:
        """Number of this server among several, from 0; None where it is the only one."""
        return self.server if self.processes > 1 else None


def host_names(hosts: str) -> list[str]:
    """Return the names in a list with commas; none where any name will do.

    What a proxy calls its site will do as well: a scheme and a port are left aside, and an address
    without a name, such as ``:80``, is any.

    Raises:
        SettingError: something in the list is no name of a host.

    >>> host_names("https://cnn.example.org, *.school.example:8443")
    ['cnn.example.org', '*.school.example']
    >>> host_names(":80")
    []
    """
    names = []
    for address in filter(None, re.split(r"[,\s]+", hosts)):
        match = _HOST.fullmatch(address)
        if not match:
            raise SettingError(
                f"HOOKVIZ_HOSTS: {shorten(address)!r} is no name of a host, such as "
                "cnn.example.org or *.example.org; several stand with commas between them."
            )
        names.append(match["name"].strip("[]").lower())
    return names if all(names) else []


def networks(proxies: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks in a list with commas; an address is a network of its own.

    Raises:
        SettingError: something in the list is neither a network nor an address.

    >>> networks("127.0.0.1, fc00::/7")
    (IPv4Network('127.0.0.1/32'), IPv6Network('fc00::/7'))
    """
    found = []
    for text in filter(None, re.split(r"[,\s]+", proxies)):
        try:
            found.append(ip_network(text))
        except ValueError as error:
            raise SettingError(
                f"HOOKVIZ_PROXIES: {shorten(text)!r} is neither a network nor an address, such as "
                "10.0.0.0/8 or 127.0.0.1; several stand with commas between them."
            ) from error
    return tuple(found)


def is_own_address(address: str) -> bool:
    """Return whether that is a name or address by which a machine means itself alone.

    >>> is_own_address("localhost"), is_own_address("127.0.0.2"), is_own_address("0.0.0.0")
    (True, True, False)
    """
    if address.lower() == "localhost":
        return True
    try:
        return ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def read_settings(environment: Mapping[str, str], limit: int | None = None) -> Settings:
    """Read the settings from `environment`, with defaults for what it leaves out.

    Megabytes that are left to HookViz follow from the memory that there is, `limit` in bytes.

    Raises:
        SettingError: a value is not a whole number or means nothing, with the variable's name.
        UnknownNameError: a variable starts with ``HOOKVIZ_`` and is none of ours.
    """
    known = {f"HOOKVIZ_{setting.name.upper()}": setting for setting in fields(Settings)}
    chosen: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith("HOOKVIZ_") or variable in _FOR_TESTS:
            continue
        if variable not in known:
            raise UnknownNameError("setting", variable, known)
        setting = known[variable]
        if setting.type is int:
            chosen[setting.name] = _whole(variable, value, setting.default, **setting.metadata)
        else:
            chosen[setting.name] = value.strip()
    return _with_memory(_checked(Settings(**chosen)), limit)


def _whole(variable: str, value: str, default: object, zero: str = "") -> int:
    digits = value.strip()
    if not (digits.isascii() and digits.isdigit() and (int(digits) > 0 or zero)):
        least = f"or 0 for {zero}" if zero else "above 0"
        without = f"0, which means {zero}" if zero and not default else default
        raise SettingError(
            f"{variable}={value!r} is not a whole number {least}; "
            f"without it HookViz takes {without}."
        )
    return int(digits)


def _checked(chosen: Settings) -> Settings:
    if chosen.log not in ("text", "json"):
        raise SettingError(f'HOOKVIZ_LOG={chosen.log!r} is neither "text" nor "json".')
    for switch in ("code", "hugging_face", "login"):
        if getattr(chosen, switch) > 1:
            number = getattr(chosen, switch)
            raise SettingError(f"HOOKVIZ_{switch.upper()}={number} is neither 0 nor 1.")
    if chosen.metrics_port > 65535:
        raise SettingError(f"HOOKVIZ_METRICS_PORT={chosen.metrics_port} is no port: 1 to 65535.")
    if 0 < len(chosen.class_code) < _SHORTEST_CODE:
        raise SettingError(
            f"HOOKVIZ_CLASS_CODE has {len(chosen.class_code)} characters, which can be guessed. "
            f"{_SHORTEST_CODE} or more work."
        )
    if chosen.languages and not Path(chosen.languages).expanduser().is_dir():
        raise SettingError(f"HOOKVIZ_LANGUAGES={shorten(chosen.languages)!r} is no folder.")
    host_names(chosen.hosts)
    networks(chosen.proxies)
    return chosen


def _with_memory(chosen: Settings, limit: int | None) -> Settings:
    """Divide the memory among the bounds that nobody set, leaving some for Python and runs."""
    if chosen.cache_mb and chosen.models_mb:
        return chosen
    there = (limit or memory.own_memory(chosen.memory_mb, chosen.processes).limit) // MEGABYTE
    return replace(
        chosen,
        cache_mb=chosen.cache_mb or max(1, min(1024, there // 8)),
        models_mb=chosen.models_mb or max(1, min(3072, there * 3 // 8)),
    )


_FOR_TESTS = {"HOOKVIZ_REQUIRE_BROWSER"}
_SHORTEST_CODE = 6
_HOST = re.compile(
    r"(?:https?://)?"
    r"(?P<name>(?:\*\.)?\w[\w-]*(?:\.\w[\w-]*)*\.?|\*|\[[\da-f:.]+\]|)"
    r"(?::\d{1,5})?/?",
    re.ASCII | re.IGNORECASE,
)


@cache
def settings() -> Settings:
    """Return the settings of this process, read from its environment once."""
    return read_settings(os.environ)
