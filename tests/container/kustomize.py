"""As much of kustomize as `deploy/kubernetes` uses, for machines without it.

What it does not know it refuses, and where kubectl is at hand a test holds it against that.
"""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "deploy" / "kubernetes"
OVERLAYS = ["one-node", "cluster"]

KNOWN = {"apiVersion", "kind", "resources", "images", "patches", "replacements"}
"""What a kustomization may say: nothing else is applied here."""


def built(folder: Path) -> list[Any]:
    """The objects that ``kubectl apply -k folder`` would send, as dicts and lists."""
    said = yaml.safe_load((folder / "kustomization.yaml").read_text("utf-8"))
    assert set(said) <= KNOWN, f"{folder}: {set(said) - KNOWN}"
    objects: list[Any] = []
    for name in said["resources"]:
        path = (folder / name).resolve()
        objects += built(path) if path.is_dir() else _documents(path)
    for patch in said.get("patches", []):
        (patched,) = _selected(objects, patch["target"])
        for operation in yaml.safe_load(patch["patch"]):
            _operate(patched, **operation)
    for image in said.get("images", []):
        for container in _containers(objects):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}:{image['newTag']}"
    for replacement in said.get("replacements", []):
        source = dict(replacement["source"])
        path_of_value = source.pop("fieldPath").split(".")
        (origin,) = _selected(objects, source)
        value = _at(origin, path_of_value)
        for target in replacement["targets"]:
            (goal,) = _selected(objects, target["select"])
            for path_of_field in target["fieldPaths"]:
                *way, last = path_of_field.split(".")
                where = _at(goal, way)
                where[_key(where, last)] = value
    return objects


def _documents(path: Path) -> list[Any]:
    # without its anchors, a document's parts would be one object in several places
    return [
        yaml.safe_load(yaml.dump(document, Dumper=_Plain))
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    ]


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _selected(objects: list[Any], target: dict[str, str]) -> list[Any]:
    assert set(target) == {"kind", "name"}
    return [
        each
        for each in objects
        if (each["kind"], each["metadata"]["name"]) == (target["kind"], target["name"])
    ]


def _operate(where: Any, op: str, path: str, value: Any) -> None:
    """One operation of a JSON patch (RFC 6902): to replace what is there."""
    assert op == "replace"
    *way, last = path.strip("/").replace("~1", "/").split("/")
    parent = _at(where, way)
    key = _key(parent, last)
    assert isinstance(parent, list) or key in parent, f"nothing to replace at {path}"
    parent[key] = value


def _at(where: Any, way: list[str]) -> Any:
    for step in way:
        where = where[_key(where, step)]
    return where


def _key(where: Any, step: str) -> Any:
    return int(step) if isinstance(where, list) else step


def _containers(objects: list[Any]) -> list[Any]:
    templates = [each["spec"]["template"] for each in objects if "template" in each.get("spec", {})]
    return [container for template in templates for container in template["spec"]["containers"]]


APP = ("Deployment", "hookviz")
JOB = ("Job", "hookviz-weights")


class Cluster:
    """The objects of one overlay, by kind and name."""

    def __init__(self, overlay: str, folder: Path = FOLDER) -> None:
        self.objects = built(folder / "overlays" / overlay)

    def of(self, kind: str, name: str = "hookviz") -> Any:
        (found,) = [
            each
            for each in self.objects
            if (each["kind"], each["metadata"]["name"]) == (kind, name)
        ]
        return found

    def kinds(self) -> set[str]:
        return {each["kind"] for each in self.objects}

    def pods(self) -> list[Any]:
        """Templates of everything that runs."""
        return [self.of(*each)["spec"]["template"] for each in (APP, JOB)]

    def app(self) -> Any:
        """The app's container."""
        (container,) = self.of(*APP)["spec"]["template"]["spec"]["containers"]
        return container

    def policies(self, labels: dict[str, str]) -> list[Any]:
        """The rules of the network for pods with those labels."""
        rules = [each["spec"] for each in self.objects if each["kind"] == "NetworkPolicy"]
        return [
            rule
            for rule in rules
            if rule["podSelector"].get("matchLabels", {}).items() <= labels.items()
        ]
