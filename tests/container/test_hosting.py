"""The arithmetic of docs/hosting.md, done again from the numbers that stand there."""

import math
import re
from pathlib import Path

import yaml

from hookviz.settings import read_settings
from tests.container.kustomize import APP, FOLDER, Cluster

DOCS = Path(__file__).parent.parent.parent / "docs"
_, _, REST = (DOCS / "hosting.md").read_text("utf-8").partition("\n## How much machine")
SECTION = REST.partition("\n## ")[0]
NUMBERS = {
    name: float(value) for name, value in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", SECTION, re.M)
}


def needed(people: int) -> tuple[int, int, int, int]:
    """Clicks a second, copies, cores and gigabytes."""
    clicks = people / NUMBERS["pause_s"]
    by_processors = clicks * NUMBERS["click_ms"] / 1000 / NUMBERS["busy"] / NUMBERS["copy_cores"]
    room = NUMBERS["copy_mb"] - NUMBERS["own_mb"] - NUMBERS["models_mb"]
    copies = math.ceil(max(by_processors, people * NUMBERS["session_mb"] / room))
    cores, gigabytes = copies * NUMBERS["copy_cores"], copies * NUMBERS["copy_mb"] / 1024
    return round(clicks), copies, round(cores), round(gigabytes)


def test_the_table_is_what_its_printed_formula_gives() -> None:
    rows = [
        [int(cell.replace(",", "")) for cell in re.findall(r"[\d,]+", row)]
        for row in re.findall(r"^\| [\d,]+ \|.*$", SECTION, re.MULTILINE)
    ]
    assert [row[0] for row in rows] == [100, 500, 5000]
    for people, *said in rows:
        assert tuple(said) == needed(people), people
    formula = SECTION.partition("```text")[2].partition("```")[0]
    assert set(re.findall(r"\b[a-z]+_[a-z]+\b|\bbusy\b", formula)) == set(NUMBERS)


def test_what_was_measured_and_what_kubernetes_starts_are_its_numbers() -> None:
    text = (DOCS / "benchmarks.md").read_text("utf-8")
    _, _, rest = text.partition("\n## Many people on one server")
    (row,) = re.findall(r"^\| \*\*ShapesNet\*\* \| \*\*100\*\* \|.*$", rest, re.MULTILINE)
    *_, click_ms, session_mb = row.strip("| ").split(" | ")
    assert (float(click_ms), float(session_mb)) == (NUMBERS["click_ms"], NUMBERS["session_mb"])
    limits = Cluster("cluster").of(*APP)["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert limits["limits"]["cpu"] == f"{NUMBERS['copy_cores']:g}"
    assert limits["limits"]["memory"] == f"{NUMBERS['copy_mb'] / 1024:g}Gi"
    chosen = read_settings({}, int(NUMBERS["copy_mb"]) * 2**20)
    assert chosen.models_mb == NUMBERS["models_mb"]
    scaler = yaml.safe_load((FOLDER / "overlays" / "cluster" / "autoscaler.yaml").read_text())
    (metric,) = scaler["spec"]["metrics"]
    assert metric["resource"]["target"]["averageUtilization"] == 100 * NUMBERS["busy"]
