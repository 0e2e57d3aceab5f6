"""The dashboard and the alerts, held against the numbers that a real server serves."""

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from scripts.servers import Server
from scripts.visitor import arrive
from tests.container.kustomize import APP, Cluster
from tests.loops import in_a_loop_of_its_own
from tests.pictures import encoded, picture

ROOT = Path(__file__).parent.parent.parent
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "hookviz.json").read_text("utf-8"))
RULES = yaml.safe_load((PROMETHEUS / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]
OF_PROMETHEUS = {"job", "instance"}
"""Labels that it gives to everything it reads; `up` is its own too."""

Series = dict[str, set[str]]


@pytest.fixture(scope="module")
def served(server: Server, metrics_port: int) -> Series:
    """Names of what `/metrics` has, and their labels, after a pass over somebody's own image."""

    async def upload() -> None:
        async with arrive(server, {"model": "ShapesNet"}) as visitor:
            await visitor.run()
            await visitor.upload(encoded(picture(7)))
            assert not visitor.problems

    in_a_loop_of_its_own(upload())
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: Series = {"up": set()}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def panel_queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def variable_queries() -> list[str]:
    """What stands in label_values(…, label), as a sum by that label."""
    queries = [each["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    found = [re.fullmatch(r"label_values\((.*), (\w+)\)", query) for query in queries]
    return [f"sum by ({match[2]}) ({match[1]})" for match in found if match]


def alert_queries() -> list[str]:
    return [rule["expr"] for rule in RULES]


QUERIES = panel_queries() + variable_queries() + alert_queries()


def parsed(query: str) -> promql_parser.Expr:
    """The query as Prometheus reads it, with an example of each of Grafana's variables."""
    plain = query.replace("$__rate_interval", "5m").replace("$instance", ".*")
    assert "$" not in plain
    return promql_parser.parse(plain)


def used(query: str) -> tuple[list[tuple[str, set[str]]], set[str]]:
    """The names in a query with their labels, and the labels that it groups by."""
    names: list[tuple[str, set[str]]] = []
    groups: set[str] = set()

    def visit(part: Any) -> None:
        match part:
            case promql_parser.VectorSelector():
                names.append((str(part.name), {each.name for each in part.matchers.matchers}))
            case promql_parser.AggregateExpr() if part.modifier:
                groups.update(part.modifier.labels)

    promql_parser.walk(parsed(query), visit)
    return names, groups


@pytest.mark.parametrize("query", QUERIES)
def test_every_name_and_label_of_a_query_is_served(query: str, served: Series) -> None:
    names, groups = used(query)
    assert names
    for name, labels in names:
        assert name in served, name
        assert labels <= served[name] | OF_PROMETHEUS, name
        assert 'job="hookviz"' in query, "other programs serve process_… too"
        assert groups <= served[name] | OF_PROMETHEUS, name


def test_everything_of_ours_that_is_served_is_on_the_dashboard(served: Series) -> None:
    shown = {name for query in panel_queries() for name, _ in used(query)[0]}
    parts = {
        f"hookviz_{name}_{end}"
        for name in ("run_seconds", "wait_seconds")
        for end in ("sum", "count")
    }  # of a histogram whose buckets are shown
    ours = {name for name in served if re.match("hookviz_(?!.*_created$)", name)}
    assert ours - parts <= shown


def test_outcomes_and_settings_that_are_named_exist() -> None:
    code = (ROOT / "hookviz" / "serving" / "turns.py").read_text("utf-8")
    outcomes = set(re.findall(r'outcome = "([a-z ]+)"', code))
    assert len(outcomes) == 5
    named = {
        word
        for query in QUERIES
        for words in re.findall(r'outcome=~?"([^"]+)"', query)
        for word in words.split("|")
    }
    assert named
    assert named <= outcomes
    (panel,) = [each for each in DASHBOARD["panels"] if each["title"] == "Runs by how they ended"]
    assert all(outcome in panel["description"] for outcome in outcomes)
    known = (ROOT / "docs" / "settings.md").read_text("utf-8")
    said = json.dumps(DASHBOARD) + (PROMETHEUS / "alerts.yaml").read_text("utf-8")
    for name in set(re.findall(r"HOOKVIZ_\w+", said)):
        assert f"`{name}`" in known


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_every_panel_says_what_it_shows_and_in_which_unit(panel: Any) -> None:
    assert panel["title"]
    assert len(panel["description"]) > 30
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        query = target["expr"]
        names = {name for name, _ in used(query)[0]}
        if unit == "percentunit":
            assert " / " in query
        elif unit == "bytes":
            assert all(name.endswith("_bytes") for name in names)
        elif unit == "ops":
            assert "rate(hookviz_runs_total" in query
        elif unit == "s":
            assert all("_seconds" in name for name in names)
        else:
            assert unit == "short"
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            grouped = used(query)[1]
            assert label in (grouped or OF_PROMETHEUS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_who_it_is_for_and_what_to_do(rule: Any) -> None:
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert set(rule["annotations"]) == {"summary", "description"}
    names, groups = used(rule["expr"])
    labels = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    assert labels <= (groups or OF_PROMETHEUS), "what is grouped away is not in the message"
    assert names


def test_prometheus_asks_every_copy_at_the_port_that_is_open() -> None:
    data = Cluster("cluster").of("ConfigMap")["data"]
    (compose,) = yaml.safe_load((PROMETHEUS / "scrape-compose.yaml").read_text())["scrape_configs"]
    (pods,) = yaml.safe_load((PROMETHEUS / "scrape-kubernetes.yaml").read_text())["scrape_configs"]
    assert compose["job_name"] == pods["job_name"] == "hookviz"
    (found,) = compose["dns_sd_configs"]
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    assert set(found["names"]) <= set(services)
    assert str(found["port"]) == data["HOOKVIZ_METRICS_PORT"]
    assert "`HOOKVIZ_METRICS_PORT=9100`" in (ROOT / "docs" / "hosting.md").read_text("utf-8")
    (discovery,) = pods["kubernetes_sd_configs"]
    deployment = Cluster("cluster").of(*APP)
    assert discovery["namespaces"]["names"] == [deployment["metadata"]["namespace"]]
    template = deployment["spec"]["template"]
    component = template["metadata"]["labels"]["app.kubernetes.io/component"]
    ports = [port["name"] for port in template["spec"]["containers"][0]["ports"]]
    kept = pods["relabel_configs"][0]["regex"].split(";")
    assert kept[0] == component
    assert kept[1] in ports
