"""The files of `deploy/` fit the proxy: its settings, variables, paths, ports, probes, and its time to stop."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.config import Settings, load_settings
from groundwire.http.app import build_app

DEPLOY = Path(__file__).parent.parent / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
DOCKERFILE = (DEPLOY.parent / "Dockerfile").read_text(encoding="utf-8")
VERSION = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
UID = int(re.findall(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)[0])
SLACK_S = 10


def documents(file: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(file.read_text(encoding="utf-8")) if each]


def of_kind(file: Path, kind: str) -> dict[str, Any]:
    return next(each for each in documents(file) if each["kind"] == kind)


def pod_of(file: Path) -> dict[str, Any]:
    pod: dict[str, Any] = of_kind(file, "Deployment")["spec"]["template"]["spec"]
    return pod


def groundwire_of(file: Path) -> dict[str, Any]:
    pod = pod_of(file)
    return next(each for each in (*pod.get("initContainers", ()), *pod["containers"]) if each["name"] == "groundwire")


def settings_of(file: Path, folder: Path) -> Settings:
    (folder / "config.yaml").write_text(of_kind(file, "ConfigMap")["data"]["config.yaml"], encoding="utf-8")
    return load_settings(folder / "config.yaml", {})


def variables(file: Path) -> set[str]:
    """Return our variables that a file names, in comments too."""
    return set(re.findall(r"GROUNDWIRE_\w+", file.read_text(encoding="utf-8")))


def is_known(variable: str) -> bool:
    """Return whether a key of the settings, or the default name of a secret in them, is this variable."""
    secrets = {getattr(Settings().admin, key) for key in ("key_env", "session_secret_env")}
    if variable in secrets | {Settings().webhook.secret_env}:
        return True
    model: Any = Settings
    for step in variable.removeprefix("GROUNDWIRE_").lower().split("__"):
        if not (isinstance(model, type) and issubclass(model, BaseModel) and step in model.model_fields):
            return False
        model = model.model_fields[step].annotation
    return True


def routes() -> set[str]:
    return {path for route in build_app(Settings(), environ={}).routes if (path := getattr(route, "path", None))}


def time_to_stop(settings: Settings) -> float:
    jobs = settings.jobs.drain if settings.jobs.url else 0.0
    return settings.server.drain_delay + settings.server.drain + jobs + SLACK_S


FILES = [file for file in sorted(DEPLOY.rglob("*.yaml")) if "templates" not in file.parts]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_variable_is_one_of_ours(file: Path) -> None:
    assert documents(file)
    assert [name for name in variables(file) if not is_known(name)] == []


@pytest.mark.parametrize("file", sorted((DEPLOY / "grafana").rglob("*.json")), ids=lambda file: file.name)
def test_dashboards_can_be_read(file: Path) -> None:
    assert json.loads(file.read_text(encoding="utf-8"))["panels"]


# --- compose ----------------------------------------------------------------------------------------------------------


def mounted(service: str) -> Iterator[tuple[str, str]]:
    for volume in COMPOSE["services"][service].get("volumes", ()):
        host, inside = volume.split(":")[:2]
        yield host, inside


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_every_path_that_compose_mounts_exists(service: str) -> None:
    for host, _ in mounted(service):
        assert (DEPLOY / host).exists() if host.startswith(".") else host in COMPOSE["volumes"]


def test_compose_runs_the_proxy_with_settings_that_fit() -> None:
    service = COMPOSE["services"]["groundwire"]
    places = {inside: host for host, inside in mounted("groundwire")}
    inside = Path(service["command"][-1])
    settings = load_settings(DEPLOY / places[str(inside.parent)] / inside.name, {})
    assert settings.server.host == "0.0.0.0"
    assert service["ports"] == [f"127.0.0.1:8080:{settings.server.port}"]
    assert (DEPLOY / service["build"] / "Dockerfile").exists()
    hosts = [str(upstream.base_url) for upstream in settings.upstreams.values()] + [settings.telemetry.otlp_endpoint]
    assert all(re.match(r"http://([a-z]+):", str(host))[1] in COMPOSE["services"] for host in hosts)  # type: ignore[index]
    for url in (settings.store.url, settings.jobs.url):
        assert url is not None
        folder = str(Path("/" + url.split("////")[1]).parent)
        assert folder in places
        assert f"--group={UID} {folder}" in DOCKERFILE, "the image must have it, or the volume belongs to root"
    assert int(service["stop_grace_period"].rstrip("s")) >= time_to_stop(settings)
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]


# --- Kubernetes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_the_image_has_the_version_of_the_package(file: Path) -> None:
    assert groundwire_of(file)["image"] == f"groundwire:{VERSION}"


def test_the_chart_installs_the_version_of_the_package() -> None:
    chart = yaml.safe_load((DEPLOY / "helm/groundwire/Chart.yaml").read_text(encoding="utf-8"))
    assert chart["appVersion"] == VERSION


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_a_manifest_runs_the_proxy_with_settings_that_fit(file: Path, tmp_path: Path) -> None:
    settings, container, pod = settings_of(file, tmp_path), groundwire_of(file), pod_of(file)
    arguments = container["args"]
    places = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert set(places.values()) <= set(volumes)
    config = places[str(Path(arguments[arguments.index("--config") + 1]).parent)]
    assert volumes[config]["configMap"]["name"] == of_kind(file, "ConfigMap")["metadata"]["name"]
    assert not any("subPath" in each for each in container["volumeMounts"]), "such files never change"
    if settings.server.keys is not None:
        assert str(Path(settings.server.keys).parent) in places
    assert pod["terminationGracePeriodSeconds"] >= time_to_stop(settings)
    for port in container.get("ports", ()):
        assert port["containerPort"] == settings.server.port


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_a_manifest_asks_for_paths_that_there_are(file: Path) -> None:
    container, known = groundwire_of(file), routes()
    probes = {name: probe for name, probe in container.items() if name.endswith("Probe")}
    paths = {name: (probe.get("httpGet") or {}).get("path") or "/healthz" for name, probe in probes.items()}
    assert set(paths.values()) <= known
    assert paths["livenessProbe"] == "/healthz", "a pod that drains or is degraded must not be killed"
    assert paths.get("readinessProbe", "/readyz") == "/readyz"
    for probe in probes.values():
        command = " ".join((probe.get("exec") or {}).get("command", ()))
        assert not command or f"127.0.0.1:{Settings().server.port}/healthz" in command
    annotations = of_kind(file, "Deployment")["spec"]["template"]["metadata"].get("annotations", {})
    assert annotations.get("prometheus.io/path", "/metrics") in known


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_a_manifest_grants_nothing_that_is_not_needed(file: Path) -> None:
    pod, container = pod_of(file), groundwire_of(file)
    security = {**pod["securityContext"], **container["securityContext"]}
    assert security["runAsNonRoot"]
    assert (security["runAsUser"], security["runAsGroup"]) == (UID, UID)
    assert security["readOnlyRootFilesystem"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "memory" in container["resources"]["limits"]
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.stem)
def test_selectors_find_what_they_are_for(file: Path) -> None:
    labels = of_kind(file, "Deployment")["spec"]["template"]["metadata"]["labels"]
    for document in documents(file):
        selector = document.get("spec", {}).get("selector", {})
        assert (selector.get("matchLabels") or selector).items() <= labels.items()


def test_the_variables_of_the_gateway_are_taken(tmp_path: Path) -> None:
    """They are given as in the secret: the variables in its comments work."""
    file = DEPLOY / "kubernetes" / "gateway.yaml"
    given = {name: "postgresql://u@db/g" for name in variables(file) if name.endswith("__URL")}
    given |= {name: "redis://redis" for name in variables(file) if name.endswith("REDIS_URL")}
    assert len(given) == 3
    settings_of(file, tmp_path)
    settings = load_settings(tmp_path / "config.yaml", given)
    assert settings.store.url == settings.jobs.url == "postgresql://u@db/g"
    assert settings.cache.redis_url == "redis://redis"
    assert of_kind(file, "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= time_to_stop(
        settings
    )


def test_the_command_for_keys_is_one(tmp_path: Path) -> None:
    said = re.search(r"groundwire (keys create .*?)  ", (DEPLOY / "kubernetes" / "gateway.yaml").read_text())
    assert said
    arguments = said[1].replace("--file keys", f"--file {tmp_path / 'keys'}").split()
    assert CliRunner().invoke(app, arguments).exit_code == 0
