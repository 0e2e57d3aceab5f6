"""Whether kustomize builds deploy/kubernetes, and an API server would read what it builds."""

import shutil
import subprocess
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.container.kustomize import FOLDER, OVERLAYS, Cluster, built

RELEASES = ["1.32", "1.37"]
"""The oldest release of Kubernetes that docs/kubernetes.md names, and the newest known here."""


@pytest.mark.parametrize("release", RELEASES)
def test_an_api_server_would_read_every_object(release: str) -> None:
    """Strictly: a field that the release does not know is an error."""
    objects: list[Any] = []
    for overlay in OVERLAYS:  # most of them are in both, and each takes half a second
        objects += [each for each in Cluster(overlay).objects if each not in objects]
    assert len(objects) >= 12
    for each in objects:
        kubernetes_validate.validate(each, release, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_itself_builds_the_same(overlay: str) -> None:
    if not shutil.which("kubectl"):
        pytest.skip("no kubectl here")
    done = subprocess.run(
        ["kubectl", "kustomize", FOLDER / "overlays" / overlay],
        check=True,
        capture_output=True,
        text=True,
    )

    def in_order(objects: list[Any]) -> list[Any]:
        return sorted(objects, key=lambda each: (each["kind"], each["metadata"]["name"]))

    theirs = list(yaml.safe_load_all(done.stdout))
    assert in_order(theirs) == in_order(built(FOLDER / "overlays" / overlay))
