"""What deploy/kubernetes promises, told from the objects that it would send to a cluster.

No cluster is asked: each promise is held against the image, the app and its settings.
"""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from hookviz.errors import UnknownNameError
from hookviz.settings import host_names, read_settings
from hookviz.ui.serving import lifecycle
from tests.container.kustomize import APP, FOLDER, OVERLAYS, ROOT, Cluster
from tests.container.test_image import LAST, environment, of


@pytest.fixture(params=OVERLAYS)
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return Cluster(request.param)


def seconds(probe: Any) -> int:
    """How long a pod must be sick before the probe acts."""
    return int(probe["periodSeconds"] * probe["failureThreshold"])


def test_every_file_is_used_and_every_object_is_in_one_namespace(cluster: Cluster) -> None:
    named = {
        (path.parent / name).resolve()
        for path in FOLDER.rglob("kustomization.yaml")
        for name in yaml.safe_load(path.read_text())["resources"]
    }
    files = {path for path in FOLDER.rglob("*.yaml") if path.name != "kustomization.yaml"}
    assert files == {path for path in named if path.suffix}
    for each in cluster.objects:
        if each["kind"] != "Namespace":
            assert each["metadata"]["namespace"] == cluster.of("Namespace")["metadata"]["name"]


def test_pods_run_as_the_images_user_who_writes_to_tmp_alone(cluster: Cluster) -> None:
    (user,) = of(LAST, "USER")
    uid = int(user.partition(":")[0])
    for pod in cluster.pods():
        spec = pod["spec"]
        pod_wide = spec["securityContext"]
        assert pod_wide["runAsNonRoot"] is True
        assert {pod_wide[name] for name in ("runAsUser", "runAsGroup", "fsGroup")} == {uid}
        assert pod_wide["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & set(spec)
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "privileged": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
    enforced = cluster.of("Namespace")["metadata"]["labels"]
    assert enforced["pod-security.kubernetes.io/enforce"] == "restricted"
    home = environment()["TORCH_HOME"]
    for pod, may_write in zip(cluster.pods(), (False, True), strict=True):
        (container,) = pod["spec"]["containers"]
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert set(mounts) == {"/tmp", home}  # noqa: S108 - inside
        assert mounts[home].get("readOnly", False) is not may_write
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        claim = volumes[mounts[home]["name"]]["persistentVolumeClaim"]["claimName"]
        assert cluster.of("PersistentVolumeClaim", claim)
        assert volumes[mounts["/tmp"]["name"]]["emptyDir"]["sizeLimit"]  # noqa: S108


def test_the_app_has_no_way_out_and_its_visitors_one_way_in(cluster: Cluster) -> None:
    app, job = (pod["metadata"]["labels"] for pod in cluster.pods())
    policies = cluster.policies(app)
    assert len(policies) == 2
    for policy in policies:
        assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
        assert not policy.get("egress")
    ways = [way for policy in policies for way in policy.get("ingress", [])]
    assert [way["ports"] for way in ways] == [[{"port": "http"}], [{"port": "metrics"}]]
    assert all(way["from"] for way in ways), "an empty list would let everybody in"
    assert not any(policy.get("ingress") for policy in cluster.policies(job))
    for policy in cluster.policies({"app.kubernetes.io/name": "anything else"}):
        assert not policy.get("ingress")
        assert not policy.get("egress")
    ports = {port["name"]: port["containerPort"] for port in cluster.app()["ports"]}
    data = cluster.of("ConfigMap")["data"]
    assert of(LAST, "EXPOSE") == [str(ports["http"])]
    assert ports["metrics"] == int(data["HOOKVIZ_METRICS_PORT"])
    (port,) = cluster.of("Service")["spec"]["ports"]
    assert port["targetPort"] == "http"
    labels = cluster.of(*APP)["spec"]["template"]["metadata"]["labels"]
    assert cluster.of("Service")["spec"]["selector"] == labels
    assert cluster.of(*APP)["spec"]["selector"]["matchLabels"] == labels


def test_probes_wait_longer_than_the_app_and_a_copy_that_goes_has_time_to_end(
    cluster: Cluster,
) -> None:
    app = cluster.app()
    names = ("startupProbe", "readinessProbe", "livenessProbe")
    for name in names:
        assert app[name]["httpGet"] == {"path": lifecycle.HEALTH_PATH, "port": "http"}
        assert app[name]["timeoutSeconds"] > lifecycle._CHECK_TIMEOUT_S
    start, ready, live = (seconds(app[name]) for name in names)
    assert start >= 60, "what the image gives it"
    assert ready < live, "first no more visitors, and only then an end"
    assert live >= 2 * 60
    # the image ends within ten seconds of SIGTERM, which comes after the pause
    pause = cluster.app()["lifecycle"]["preStop"]["sleep"]["seconds"]
    spec = cluster.of(*APP)["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] >= pause + 10


def test_each_copy_is_as_large_as_composes_and_starts_with_these_settings(cluster: Cluster) -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    limits = compose["services"]["app"]["deploy"]["resources"]["limits"]
    assert (limits["cpus"], limits["memory"]) == ("${CPUS:-2}", "${MEMORY:-4g}")
    bounds = cluster.app()["resources"]["limits"]
    assert (bounds["cpu"], bounds["memory"]) == ("2", "4Gi")
    for pod in cluster.pods():
        for container in pod["spec"]["containers"]:
            assert {"cpu", "memory"} <= set(container["resources"]["limits"])
            assert {"cpu", "memory"} == set(container["resources"]["requests"])
    data = cluster.of("ConfigMap")["data"]
    assert read_settings(data, 2**32).metrics_address == "0.0.0.0"  # noqa: S104 - in a pod
    assert cluster.app()["envFrom"][0] == {"configMapRef": {"name": "hookviz"}}
    # Kubernetes would add the Service's address under names that the app refuses
    with pytest.raises(UnknownNameError, match="HOOKVIZ_SERVICE_HOST"):
        read_settings(data | {"HOOKVIZ_SERVICE_HOST": "10.0.0.1"})
    assert all(pod["spec"]["enableServiceLinks"] is False for pod in cluster.pods())


@pytest.mark.parametrize("name", ["cnn.example.org", "lab.school.example"])
def test_one_name_is_the_ingress_the_certificate_and_the_apps_only_host(
    name: str, tmp_path: Path
) -> None:
    """Changed in one place, as docs/kubernetes.md says."""
    copy = tmp_path / "kubernetes"
    shutil.copytree(FOLDER, copy)
    for overlay in OVERLAYS:
        path = copy / "overlays" / overlay / "kustomization.yaml"
        text = path.read_text()
        assert text.count("cnn.example.org") == 1
        path.write_text(text.replace("cnn.example.org", name))
        cluster = Cluster(overlay, copy)
        ingress = cluster.of("Ingress")["spec"]
        assert [rule["host"] for rule in ingress["rules"]] == [name]
        assert [tls["hosts"] for tls in ingress["tls"]] == [[name]]
        assert host_names(cluster.of("ConfigMap")["data"]["HOOKVIZ_HOSTS"]) == [name]


def test_an_ingress_bounds_uploads_and_a_cookie_keeps_a_visitor_at_one_copy(
    cluster: Cluster,
) -> None:
    data = cluster.of("ConfigMap")["data"]
    (limit,) = {value for name, value in data.items() if name.endswith(("_SIZE", "_MB"))}
    assert "STREAMLIT_SERVER_MAX_UPLOAD_SIZE" in data
    notes = cluster.of("Ingress")["metadata"]["annotations"]
    assert notes["nginx.ingress.kubernetes.io/proxy-body-size"] == f"{int(limit) + 1}m"
    at_ingress = cluster.of("Ingress")["metadata"]["annotations"]
    nginx = {name.rpartition("/")[2]: value for name, value in at_ingress.items()}
    assert nginx["affinity"] == "cookie"
    assert nginx["affinity-mode"] == "persistent"
    at_service = cluster.of("Service")["metadata"]["annotations"]
    traefik = {name.rpartition("/")[2]: value for name, value in at_service.items()}
    assert traefik["service.sticky.cookie"] == "true"
    cookies = {nginx["session-cookie-name"], traefik["service.sticky.cookie.name"]}
    assert cookies == {"hookviz_copy"}, "the same as Compose's proxy"
    (path,) = cluster.of("Ingress")["spec"]["rules"][0]["http"]["paths"]
    assert path["backend"]["service"] == {"name": "hookviz", "port": {"name": "http"}}


def test_copies_share_a_secret_and_as_many_run_as_a_cluster_needs() -> None:
    cluster = Cluster("cluster")
    scaler = cluster.of("HorizontalPodAutoscaler")["spec"]
    deployment = cluster.of(*APP)
    assert scaler["scaleTargetRef"] == {
        "apiVersion": deployment["apiVersion"],
        "kind": "Deployment",
        "name": deployment["metadata"]["name"],
    }
    assert "replicas" not in deployment["spec"], "each apply would undo what the scaler did"
    assert 2 <= scaler["minReplicas"] < scaler["maxReplicas"]
    assert "cpu" in cluster.app()["resources"]["requests"], "the scaler's 100 %"
    assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 1800
    budget = cluster.of("PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == deployment["spec"]["selector"]
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    (spread,) = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["labelSelector"] == deployment["spec"]["selector"]
    secret = {"name": "hookviz", "optional": False}
    assert cluster.app()["envFrom"][1] == {"secretRef": secret}
    assert "Secret" not in cluster.kinds()
    text = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    assert re.search(r"create secret generic hookviz .*STREAMLIT_SERVER_COOKIE_SECRET=", text)


def test_one_node_has_room_for_one_copy_and_nothing_that_forbids_to_empty_it() -> None:
    cluster = Cluster("one-node")
    assert not {"HorizontalPodAutoscaler", "PodDisruptionBudget"} & cluster.kinds()
    assert cluster.of(*APP)["spec"]["strategy"] == {"type": "Recreate"}
    assert cluster.app()["resources"]["requests"] == {"cpu": "500m", "memory": "2Gi"}
