"""``hookviz doctor``: say what works on this machine, and what to do about the rest.

Each check is a function. Everything is imported inside, because a library that can't be imported is
one of the findings.
"""

# ruff: noqa: PLC0415
import http.client
import os
import platform
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path

import click

from hookviz import __version__
from hookviz.cli.terminal import MISTAKE, echo_json
from hookviz.errors import HookVizError
from hookviz.machine.installed import INSTALL_APP, missing_app_packages
from hookviz.wording import byte_size

_REACH_SECONDS = 3.0
_ROOMY = 1e9  # bytes of free disk: the largest weights take about half


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of looking at one thing.

    Attributes:
        subject: what was looked at.
        state: ``"ok"``, ``"warning"``, or ``"problem"`` where HookViz can't be used with it.
        text: what was found.
        advice: what to do about it.
    """

    subject: str
    state: str
    text: str
    advice: str = ""


Check = Callable[[], Iterator[Finding]]


def guarded(check: Check) -> list[Finding]:
    """Return what a check finds; one that fails is a problem, and others go on."""
    subject = check.__name__.replace("_", " ")
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except HookVizError as error:  # such as a setting that is wrong; it says what to do itself
        findings.append(Finding(subject, "problem", _words(error)))
    except Exception as error:  # noqa: BLE001 - a broken installation raises anything
        advice = "Reinstall HookViz and what it needs: pip install --force-reinstall hookviz"
        findings.append(Finding(subject, "problem", _words(error), advice))
    return findings


def versions() -> Iterator[Finding]:
    """Find the versions of HookViz, Python and the libraries, and those that are missing."""
    yield Finding("HookViz", "ok", __version__)
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.platform()}")
    missing = missing_app_packages()
    for library in ("torch", "torchvision", "streamlit"):
        if library in missing:
            continue
        try:
            # A torch says here which CUDA it was built for, and in its metadata it does not.
            yield Finding(library, "ok", str(import_module(library).__version__))
        except Exception as error:  # noqa: BLE001 - a broken build raises anything
            yield Finding(library, "problem", _words(error), _reinstall(library))
    if missing:
        text = f"the library alone; `hookviz run` also needs {', '.join(missing)}"
        yield Finding("app", "warning", text, INSTALL_APP)
    try:
        yield Finding("timm", "ok", f"{metadata.version('timm')} (optional)")
    except metadata.PackageNotFoundError:
        yield Finding("timm", "ok", "not installed (optional: pip install hookviz[timm])")


def builds() -> Iterator[Finding]:
    """Find whether torch and torchvision are builds of one release, by a compiled operator."""
    import torch

    try:
        from torchvision import ops

        boxes = torch.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0]])
        survivors = ops.nms(boxes, torch.tensor([0.5, 0.9]), 0.5).tolist()
    except Exception as error:  # noqa: BLE001 - a broken build raises anything
        yield Finding("torch builds", "problem", _words(error), _reinstall("torchvision"))
        return
    if survivors == [1]:
        yield Finding("torch builds", "ok", "torch and torchvision fit together")
    else:
        text = f"torchvision's nms gives {survivors}, not [1]"
        yield Finding("torch builds", "problem", text, _reinstall("torchvision"))


def devices() -> Iterator[Finding]:
    """Find the devices that a network can compute on."""
    import torch

    yield Finding("cpu", "ok", f"{torch.get_num_threads()} threads, {os.cpu_count()} cores")
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        text = f"{properties.name}, {byte_size(properties.total_memory)}"
        try:
            torch.ones(1, device=f"cuda:{index}").sum().item()
            yield Finding(f"cuda:{index}", "ok", text)
        except Exception as error:  # noqa: BLE001 - drivers raise anything
            advice = "Use --device cpu, or install the torch build for this GPU's driver."
            yield Finding(f"cuda:{index}", "warning", f"{text}: {_words(error)}", advice)
    if torch.backends.mps.is_available():
        yield Finding("mps", "ok", "Apple's GPU")


def settings() -> Iterator[Finding]:
    """Find what the ``HOOKVIZ_*`` variables say, and whether there is the memory they allow."""
    from hookviz.machine.memory import MEGABYTE
    from hookviz.models.loading import find_device
    from hookviz.settings import read_settings

    try:
        chosen = read_settings(os.environ)
        yield Finding("settings", "ok", _chosen_variables() or "all as they come")
    except HookVizError as error:
        chosen = read_settings({})
        advice = "Correct the variable or unset it; docs/settings.md lists them."
        yield Finding("settings", "problem", _words(error), advice)
    try:
        find_device(chosen.device)
    except HookVizError as error:
        advice = "The app computes on the CPU; set HOOKVIZ_DEVICE to one that is there."
        yield Finding("HOOKVIZ_DEVICE", "warning", _words(error), advice)
    total = _memory_bytes()
    if total is None:
        yield Finding("memory", "ok", "this system does not say how much there is")
        return
    bound = (chosen.models_mb + chosen.cache_mb) * MEGABYTE
    text = f"{byte_size(total)}; models and activations may take {byte_size(bound)}"
    if bound > total:
        advice = "Set HOOKVIZ_MODELS_MB and HOOKVIZ_CACHE_MB lower."
        yield Finding("memory", "warning", text, advice)
    else:
        yield Finding("memory", "ok", text)


def bundled_models() -> Iterator[Finding]:
    """Find whether the CNNs that ship with HookViz load, run on a sample, and are drawn."""
    import hookviz
    from hookviz.images.samples import samples
    from hookviz.models.bundled import BUNDLED

    for name in BUNDLED:
        cap = hookviz.capture(hookviz.load_model(name), samples()[0].path)
        hookviz.make_grid(next(iter(cap.values()))).png()
        cap.predictions()
        text = f"{name}: {len(cap)} layers captured in {cap.seconds * 1e3:.0f} ms, and drawn"
        yield Finding("bundled models", "ok", text)


def weights_folder() -> Iterator[Finding]:
    """Find torch's folder of weights, what is in it, and whether more can be written."""
    import torch

    folder = Path(torch.hub.get_dir()) / "checkpoints"
    files = [file for file in folder.glob("*") if file.is_file()] if folder.is_dir() else []
    size = sum(file.stat().st_size for file in files)
    root = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(root).free
    text = f"{folder}: {len(files)} files, {byte_size(size)}; {byte_size(free)} free"
    if not root.is_dir() or not os.access(root, os.W_OK | os.X_OK):
        advice = "Weights can't be downloaded there. Set TORCH_HOME to a folder you can write to."
        yield Finding("weights folder", "warning", f"{text}; not writable", advice)
    elif free < _ROOMY:
        advice = "Free some space, or set TORCH_HOME to a folder on another disk."
        yield Finding("weights folder", "warning", text, advice)
    else:
        yield Finding("weights folder", "ok", text)


def weights() -> Iterator[Finding]:
    """Find which models' weights are here, and whether their hashes are those in their names."""
    from hookviz.cli.fetch import verified
    from hookviz.models import catalog

    outcomes = [verified(spec) for spec in catalog.described_models() if spec.on_disk]
    whole = [outcome for outcome in outcomes if outcome.state == "there"]
    names = ", ".join(outcome.name for outcome in whole) or "none yet"
    yield Finding("weights here", "ok", names)
    for outcome in outcomes:
        if outcome.state == "damaged":
            advice = f"hookviz fetch {outcome.name}"
            yield Finding("weights here", "warning", f"{outcome.name}: {outcome.text}", advice)


def weights_host() -> Iterator[Finding]:
    """Find whether weights can be downloaded, by asking for the head of one file."""
    from hookviz.models import catalog

    name = next(spec.name for spec in catalog.described_models() if spec.download_bytes)
    url = catalog.weights_url(name)
    host = url.rpartition("/")[0]
    offline = (
        "Weights that are here, random ones and the bundled models work. For others: fetch them "
        "where there is a network and copy the weights folder, or set HOOKVIZ_WEIGHTS_URL to a "
        "mirror."
    )
    try:
        status = _head(url)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        yield Finding("download", "warning", f"{host} can't be reached: {reason}", offline)
        return
    # Some servers don't answer HEAD (405, 501), and have the file all the same.
    if status < 400 or status in {405, 501}:
        yield Finding("download", "ok", f"{host} answers")
    else:
        text = f"{host} answers {status} for {url.rpartition('/')[2]}"
        yield Finding("download", "warning", text, offline)


_CHECKS: tuple[Check, ...] = (
    *(versions, builds, devices, settings),
    *(bundled_models, weights_folder, weights, weights_host),
)


def _memory_bytes() -> int | None:
    """Return the bytes that this process may use, in a container too; None where unknown."""
    amounts = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        amounts.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limit = Path("/sys/fs/cgroup/memory.max")  # control groups, version 2
    if limit.is_file():
        text = limit.read_text("ascii").strip()
        if text.isdigit():  # "max" stands for none
            amounts.append(int(text))
    return min(amounts, default=None)


def _head(url: str) -> int:
    """Return the status with which a server answers ``HEAD`` for `url`."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r} is no http address")
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - http alone, see above
    try:
        with urllib.request.urlopen(request, timeout=_REACH_SECONDS) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def _chosen_variables() -> str:
    chosen = sorted(
        f"{name}={value}" for name, value in os.environ.items() if name.startswith("HOOKVIZ_")
    )
    return ", ".join(chosen)


def _reinstall(library: str) -> str:
    if library == "streamlit":
        return "pip install --force-reinstall streamlit"
    return (
        "torch and torchvision must come in one release from one index: "
        "pip install --force-reinstall torch torchvision"
    )


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


_MARKS = {"ok": "ok  ", "warning": "warn", "problem": "FAIL"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> None:
    """Say what works on this machine, and what to do about what doesn't.

    The exit status is 0 where HookViz can be used, warnings or not, and 2 where it can't.
    """
    findings: list[Finding] = []
    with click.progressbar(
        _CHECKS, label="Checking", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        for check in bar:
            for finding in guarded(check):
                # One broken thing breaks several checks; the first says it.
                problems = {known.text for known in findings if known.state == "problem"}
                if finding.text not in problems:
                    findings.append(finding)
    usable = all(finding.state != "problem" for finding in findings)
    if as_json:
        echo_json({"usable": usable, "findings": [asdict(finding) for finding in findings]})
    else:
        _echo(findings)
    if not usable:
        click.get_current_context().exit(MISTAKE)


def _echo(findings: list[Finding]) -> None:
    width = max(len(finding.subject) for finding in findings)
    for finding in findings:
        click.echo(f"{_MARKS[finding.state]}  {finding.subject.ljust(width)}  {finding.text}")
        if finding.advice:
            click.echo(f"{' ' * (width + 8)}→ {finding.advice}")
    problems = sum(finding.state == "problem" for finding in findings)
    warnings = sum(finding.state == "warning" for finding in findings)
    if problems:
        click.echo(f"\nHookViz can't be used as it is: {problems} to put right.")
    else:
        click.echo(f"\nHookViz can be used; warnings: {warnings}.")
