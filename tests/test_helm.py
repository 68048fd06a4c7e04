"""The Helm chart: its values, and the manifests that it renders where Helm or its SDK (`helm-python-sdk`) is installed.

`kubernetes-validate` holds the JSON schemas of Kubernetes; `make chart` installs it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from groundwire.config import Settings, load_settings
from tests.test_deploy import is_known, routes, time_to_stop

ROOT = Path(__file__).parent.parent
CHART = ROOT / "deploy/helm/groundwire"
TEMPLATES = sorted((CHART / "templates").rglob("*.*"))
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
KUBERNETES = ("1.29.0", "1.32.0", "1.37.0")


def given(name: str) -> dict[str, Any]:
    return yaml.safe_load((CHART / f"ci/{name}-values.yaml").read_text(encoding="utf-8")) if name else {}


def merged(values: dict[str, Any], defaults: dict[str, Any] | None = None) -> dict[str, Any]:
    """Merge values as Helm does."""
    result = dict(DEFAULTS if defaults is None else defaults)
    for key, value in values.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(value, result[key]) if both else value
    return result


def rendered(values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Render the chart. Raises ValueError if Helm refuses the values."""
    texts = _by_command(values, folder) if shutil.which("helm") else _by_sdk(values)
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def _by_command(values: dict[str, Any], folder: Path) -> list[str]:
    (folder / "values.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    command = ["helm", "template", "demo", str(CHART), "--values", str(folder / "values.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise ValueError(done.stderr)
    return [done.stdout]


def _by_sdk(values: dict[str, Any]) -> Iterator[str]:
    helm = pytest.importorskip("helm_python", reason="neither helm nor helm-python-sdk is installed")
    try:
        with helm.Chart.load(CHART) as chart:
            chart.validate_schema(values)
            texts = chart.render(values, name="demo", namespace="default")
    except helm.HelmError as error:
        raise ValueError(str(error)) from error
    yield from (text for name, text in texts.items() if name.endswith(".yaml"))


def one(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found


# --- values, without Helm ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "full", "sidecar"])
def test_values_are_valid(name: str) -> None:
    jsonschema.Draft7Validator(SCHEMA).validate(merged(given(name)))


@pytest.mark.parametrize(
    "values",
    [
        {"mode": "daemon"},
        {"mode": "sidecar"},
        {"replica": 3},
        {"autoscaling": {"enabled": "yes"}},
        {"secrets": {"variables": ["Not_A_Name"]}},
        {"secrets": {"key": "sk-123"}},
        {"config": "store: {url: 'postgresql://groundwire:secret@db/groundwire'}"},
        {"service": {"port": 0}},
        {"image": {"digest": "latest"}},
        {"networkPolicy": {"from": [1]}},
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any]) -> None:
    assert not jsonschema.Draft7Validator(SCHEMA).is_valid(merged(values))


def test_templates_use_values_that_there_are() -> None:
    for template in TEMPLATES:
        for path in re.findall(r"\.Values\.([\w.]+)", template.read_text(encoding="utf-8")):
            value: Any = DEFAULTS
            for step in path.split("."):
                assert step in value, f"{template.name}: .Values.{path}"
                value = value[step]


def test_the_schema_describes_the_values_that_there_are() -> None:
    assert set(SCHEMA["properties"]) - {"global"} == set(DEFAULTS)
    for name, section in SCHEMA["properties"].items():
        if section.get("additionalProperties") is False:
            assert set(section["properties"]) == set(DEFAULTS[name]), name


def test_the_settings_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(DEFAULTS["config"], encoding="utf-8")
    settings = load_settings(tmp_path / "config.yaml", {"GROUNDWIRE_JOBS__URL": "sqlite:///jobs.db"})
    assert DEFAULTS["terminationGracePeriodSeconds"] >= time_to_stop(settings)


def test_the_chart_has_the_version_of_the_distribution() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == project["version"]


def test_the_values_of_the_documentation_are_valid() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    (example,) = re.findall(r'^```yaml title="values.yaml"\n(.*?)^```', page, re.DOTALL | re.MULTILINE)
    jsonschema.Draft7Validator(SCHEMA).validate(merged(yaml.safe_load(example)))
    (adapter,) = re.findall(r'^```yaml title="values of prometheus-adapter"\n(.*?)^```', page, re.DOTALL | re.MULTILINE)
    (rule,) = yaml.safe_load(adapter)["rules"]["custom"]
    assert rule["name"]["as"] == DEFAULTS["autoscaling"]["metric"]


def test_the_metric_of_the_autoscaler_is_one_of_the_proxy() -> None:
    pages = (ROOT / "docs/observability.md").read_text(encoding="utf-8")
    assert f"| `{DEFAULTS['autoscaling']['metric']}` | gauge |" in pages


# --- manifests, by Helm -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", ["", "full", "sidecar"])
def test_manifests_are_valid_for_kubernetes(name: str, version: str, tmp_path: Path) -> None:
    validator = pytest.importorskip("kubernetes_validate")
    for manifest in rendered(given(name), tmp_path):
        if manifest["kind"] != "ServiceMonitor":  # its schema comes with the operator
            validator.validate(manifest, version, strict=True)


def test_every_part_is_rendered_where_it_is_switched_on(tmp_path: Path) -> None:
    base = {"ConfigMap", "Deployment", "Pod", "PodDisruptionBudget", "Service", "ServiceAccount"}
    more = {"HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor"}
    assert {each["kind"] for each in rendered({}, tmp_path)} == base
    assert {each["kind"] for each in rendered(given("full"), tmp_path)} == base | more
    sidecar = {each["kind"] for each in rendered(given("sidecar"), tmp_path)}
    assert sidecar == {"ConfigMap", "Deployment", "ServiceAccount"}


@pytest.mark.parametrize("name", ["", "full", "sidecar"])
def test_the_container_runs_the_proxy_with_settings_that_fit(name: str, tmp_path: Path) -> None:
    manifests = rendered(given(name), tmp_path)
    pod = one(manifests, "Deployment")["spec"]["template"]["spec"]
    (container,) = [
        each for each in (*pod.get("initContainers", ()), *pod["containers"]) if each["name"] == "groundwire"
    ]
    (tmp_path / "config.yaml").write_text(one(manifests, "ConfigMap")["data"]["config.yaml"], encoding="utf-8")
    settings = load_settings(tmp_path / "config.yaml", {})
    assert pod["terminationGracePeriodSeconds"] >= time_to_stop(settings)
    volumes = {each["name"] for each in pod["volumes"]}
    assert {each["name"] for each in container["volumeMounts"]} <= volumes
    assert [each["name"] for each in container.get("env", ()) if not is_known(each["name"])] == []
    security = container["securityContext"]
    assert security["runAsNonRoot"]
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert {"memory"} <= set(container["resources"]["limits"])
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        get = container.get(probe, {}).get("httpGet")
        assert get is None or get["path"] in routes()
    assert container["args"][-1] == str(Settings().server.port)


def test_an_image_is_named_by_its_tag_or_by_its_digest(tmp_path: Path) -> None:
    for image, name in (
        ({"tag": "1.2.3"}, "groundwire:1.2.3"),
        ({"tag": "1.2.3", "digest": f"sha256:{'a' * 64}"}, f"groundwire@sha256:{'a' * 64}"),
    ):
        deployment = one(rendered({"image": image}, tmp_path), "Deployment")
        assert [each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]] == [name]


def test_the_autoscaler_scales_the_deployment_on_requests_in_progress(tmp_path: Path) -> None:
    manifests = rendered(given("full"), tmp_path)
    deployment, scaler = one(manifests, "Deployment"), one(manifests, "HorizontalPodAutoscaler")["spec"]
    assert "replicas" not in deployment["spec"]
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    (metric,) = scaler["metrics"]
    assert metric["pods"]["metric"]["name"] == "http_server_active_requests"
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "40"}


def test_selectors_find_the_pods_and_the_service(tmp_path: Path) -> None:
    manifests = rendered(given("full"), tmp_path)
    pod = one(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    service = one(manifests, "Service")
    for kind, path in (
        ("Service", ("selector",)),
        ("PodDisruptionBudget", ("selector", "matchLabels")),
        ("NetworkPolicy", ("podSelector", "matchLabels")),
        ("Deployment", ("selector", "matchLabels")),
    ):
        selector: Any = one(manifests, kind)["spec"]
        for step in path:
            selector = selector[step]
        assert selector
        assert selector.items() <= pod.items(), kind
    monitor = one(manifests, "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["endpoints"]] == [each["name"] for each in service["spec"]["ports"]]
    (test,) = [each for each in manifests if each["kind"] == "Pod"]
    assert f"http://{service['metadata']['name']}:80/readyz" in test["spec"]["containers"][0]["command"][-1]


def test_secrets_are_references(tmp_path: Path) -> None:
    manifests = rendered(given("full"), tmp_path)
    assert not [each for each in manifests if each["kind"] == "Secret"]
    (container,) = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": "groundwire"}}]
    variables = {each["name"]: each for each in container["env"]}
    assert variables["GROUNDWIRE_SERVER__KEYS"]["value"] == "/etc/groundwire-keys/keys"
    assert "valueFrom" in variables["GROUNDWIRE_CACHE__REDIS_URL"]


def test_the_sidecar_starts_first_and_is_reachable_from_its_pod_only(tmp_path: Path) -> None:
    pod = one(rendered(given("sidecar"), tmp_path), "Deployment")["spec"]["template"]["spec"]
    (proxy,) = pod["initContainers"]
    assert proxy["restartPolicy"] == "Always"
    assert "127.0.0.1" in proxy["args"]
    assert "ports" not in proxy
    assert [each["name"] for each in pod["containers"]] == ["application"]


@pytest.mark.parametrize("values", [{"mode": "sidecar"}, {"config": "a: [1"}, {"replica": 3}])
def test_helm_refuses_wrong_values(values: dict[str, Any], tmp_path: Path) -> None:
    rendered({}, tmp_path)
    with pytest.raises(ValueError, match=r"sidecar|config|replica"):
        rendered(values, tmp_path)
