"""The workflows: what they run is pinned by its hash, and each job may do what it needs."""

import re
from pathlib import Path

import pytest
import yaml

GITHUB = Path(__file__).parent.parent.parent / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_only_one_job_may_write(path: Path) -> None:
    text = path.read_text("utf-8")
    pinned = re.compile(r"\./|[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
    assert [each for each in re.findall(r"uses: (.+)", text) if not pinned.match(each)] == []
    assert "--extra-index-url" not in text
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    may_sign = {
        name for name, job in workflow["jobs"].items() if "id-token" in job.get("permissions", {})
    }
    assert may_sign == ({"pypi"} if path.stem == "release" else set())


def test_what_is_pinned_is_looked_at_each_week() -> None:
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text("utf-8"))["updates"]
    kinds = {each["package-ecosystem"] for each in updates}
    assert kinds == {"pip", "npm", "docker", "github-actions"}
    assert {each["schedule"]["interval"] for each in updates} == {"weekly"}
