"""The Helm chart: Kubernetes takes what it renders, the processes in it have the least rights, and know their settings."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]  # read for tests; stubs would be one more package

from ojs_command.services import SERVICES
from ojs_core.runtime.settings import OPTIONS

CHART = Path(__file__).parents[3] / "deploy" / "chart" / "ojs-nats"
HELM = str(Path(sys.executable).with_name("helm"))
VALUES = sorted(CHART.glob("ci/*.yaml"))
KUBERNETES = "1.29", "1.36"
"""The oldest version that the chart is for, and a new one."""
OF_OTHERS = {"PodMonitor", "ScaledObject", "TriggerAuthentication"}
"""Kinds of the Prometheus Operator and of KEDA, whose schemas no package carries."""
VARIABLES = {option.env for option in OPTIONS}

every_values = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)


def helm(*arguments: str) -> str:
    ran = subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@cache
def rendered(values: Path) -> list[dict[str, Any]]:
    """The objects that an installation `jobs` in the namespace `work` has."""
    found = yaml.safe_load_all(helm("template", "jobs", str(CHART), "--namespace", "work", "--values", str(values)))
    return [described for described in found if described is not None]


def workloads(values: Path) -> list[dict[str, Any]]:
    return [described for described in rendered(values) if described["kind"] in {"Deployment", "StatefulSet"}]


def named(values: Path, kind: str) -> dict[str, dict[str, Any]]:
    return {described["metadata"]["name"]: described for described in rendered(values) if described["kind"] == kind}


def values_of(name: str) -> Path:
    return CHART / "ci" / f"{name}.yaml"


def environment(workload: dict[str, Any]) -> dict[str, str]:
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


@every_values
def test_helm_finds_nothing_wrong(values: Path) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), "--values", str(values))


@every_values
@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.slow
def test_kubernetes_takes_it(values: Path, version: str) -> None:
    checked = [described for described in rendered(values) if described["kind"] not in OF_OTHERS]
    assert len(checked) > 8
    for described in checked:
        kubernetes_validate.validate(described, version, strict=True)


@every_values
def test_a_process_may_do_no_more_than_it_needs(values: Path) -> None:
    for workload in workloads(values):
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


@every_values
def test_every_variable_is_a_setting(values: Path) -> None:
    for workload in workloads(values):
        assert set(environment(workload)) <= VARIABLES


@every_values
def test_all_services_run(values: Path) -> None:
    run: list[str] = []
    for workload in workloads(values):
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        first, *more = container["args"]
        run += more if first == "services" else [first]
    assert sorted(run) == sorted(entry.name for entry in SERVICES)


@every_values
def test_selectors_find_their_own_pods_alone(values: Path) -> None:
    labels = [workload["spec"]["template"]["metadata"]["labels"] for workload in workloads(values)]
    for workload in workloads(values):
        wanted = workload["spec"]["selector"]["matchLabels"]
        assert sum(wanted.items() <= found.items() for found in labels) == 1


def test_without_keys_a_gateway_is_not_opened() -> None:
    gateway = named(values_of("defaults"), "Deployment")["jobs-gateway"]
    assert not {"OJS_INSECURE", "OJS_API_KEY", "OJS_API_KEY_FILE"} & environment(gateway).keys()


def test_secrets_come_as_files_and_not_as_variables() -> None:
    gateway = named(values_of("one-server"), "Deployment")["jobs-gateway"]
    assert environment(gateway)["OJS_API_KEY_FILE"] == "/etc/ojs-nats/api-key/key"
    guarded = named(values_of("guarded"), "Deployment")["jobs-gateway"]
    assert environment(guarded)["OJS_NATS_CREDS"] == "/etc/ojs-nats/creds/{role}.creds"
    assert environment(guarded)["OJS_TLS_KEY"] == "/etc/ojs-nats/tls/tls.key"
    assert environment(guarded)["OJS_NATS_API_URL"] == environment(guarded)["OJS_NATS"]


def test_the_ingress_leads_to_the_gateway_which_knows_its_name() -> None:
    values = values_of("open")
    (rule,) = named(values, "Ingress")["jobs-ojs-nats"]["spec"]["rules"]
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] in named(values, "Service")
    assert environment(named(values, "Deployment")["jobs-gateway"])["OJS_ALLOWED_HOSTS"] == rule["host"]


def test_keda_asks_the_gateway_for_what_waits_with_a_key() -> None:
    values = values_of("scaled")
    scaled = named(values, "ScaledObject")
    assert scaled.keys() == {"mail-worker", "video-worker"}
    (trigger,) = scaled["mail-worker"]["spec"]["triggers"]
    assert trigger["metadata"]["url"] == "http://jobs-gateway.work.svc:80/ojs/v1/queues/mail/stats"
    assert trigger["metadata"]["valueLocation"] == "stats.available"
    (reference,) = named(values, "TriggerAuthentication")["jobs-workers"]["spec"]["secretTargetRef"]
    assert reference == {"parameter": "token", "name": "keda-key", "key": "key"}


def test_keda_without_a_key_is_refused() -> None:
    ran = subprocess.run(
        [HELM, "template", "jobs", str(CHART), "--set", "keda.workers[0].deployment=a,keda.workers[0].queue=b"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "keda.keySecret is missing" in ran.stderr
