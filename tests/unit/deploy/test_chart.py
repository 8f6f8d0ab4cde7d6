"""The Helm chart: Kubernetes takes what it renders, the processes in it have the least rights, and know their settings."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml  # type: ignore[import-untyped]  # read for tests; stubs would be one more package

from ojs_command.services import SERVICES
from ojs_engine.jetstream.grants import ANSWERING
from ojs_engine.jetstream.grants import SERVICES as ROLES
from ojs_features.all import GRANTS
from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_runtime.settings import OPTIONS, Settings, load

CHART = Path(__file__).parents[3] / "deploy" / "chart" / "ojs-nats"
HELM = str(Path(sys.executable).with_name("helm"))
VALUES = sorted(CHART.glob("ci/*.yaml"))
KUBERNETES = "1.29", "1.36"
"""The oldest version that the chart is for, and a new one."""
OF_OTHERS = {"PodMonitor", "ScaledObject", "TriggerAuthentication"}
"""Kinds of the Prometheus Operator and of KEDA, whose schemas no package carries."""
VARIABLES = {option.env for option in (*OPTIONS, *OF_FEATURES)}

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


def workloads(values: Path, *more: str) -> list[dict[str, Any]]:
    return [described for described in rendered(values) if described["kind"] in {"Deployment", "StatefulSet", *more}]


def named(values: Path, kind: str) -> dict[str, dict[str, Any]]:
    return {described["metadata"]["name"]: described for described in rendered(values) if described["kind"] == kind}


def values_of(name: str) -> Path:
    return CHART / "ci" / f"{name}.yaml"


def refused(values: str, tmp_path: Path) -> str:
    """Return what Helm says of values that it doesn't take."""
    (file := tmp_path / "values.yaml").write_text(values, encoding="utf-8")
    ran = subprocess.run([HELM, "template", str(CHART), "--values", file], capture_output=True, text=True, check=False)
    assert ran.returncode != 0, values
    return ran.stderr


def settings_of(workload: dict[str, Any]) -> Settings:
    """The settings of a process, as it reads them."""
    return load({}, environment(workload), OF_FEATURES).settings


def notes(values: Path, tmp_path: Path) -> str:
    """Return what an installation prints: without a cluster Helm doesn't render that file."""
    shutil.copytree(CHART, chart := tmp_path / "chart")
    shown = chart / "templates" / "shown.yaml"
    shown.write_text('notes: {{ include "ojs.notes" . | toJson }}\n', encoding="utf-8")
    said = helm("template", "jobs", str(chart), "--values", str(values), "--show-only", "templates/shown.yaml")
    return str(yaml.safe_load(said)["notes"])


def environment(workload: dict[str, Any]) -> dict[str, str]:
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value", "its-pod") for variable in container["env"]}


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
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
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
def test_every_variable_is_a_setting_that_its_process_reads(values: Path) -> None:
    for workload in workloads(values, "Job"):
        assert set(environment(workload)) <= VARIABLES
        assert settings_of(workload).replicas in {1, 3}
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        assert len(environment(workload)) == len(container["env"]), "a variable is there twice"


def test_numbers_are_written_as_they_are_read() -> None:
    guarded = settings_of(named(values_of("guarded"), "Deployment")["jobs-gateway"])
    assert (guarded.max_body_bytes, guarded.strict, guarded.storage_limit) == (8_388_608, True, 100 << 30)
    plain = settings_of(named(values_of("openshift"), "Deployment")["jobs-gateway"])
    assert plain.storage_limit == 107_374_182_400


@pytest.mark.parametrize(
    ("said", "meant"), [(123, 123), ("45", 45), ("5k", 5_000), ("2G", 2_000_000_000), ("1Ki", 1_024), ("3Ti", 3 << 40)]
)
def test_a_quantity_is_a_number_of_bytes(said: str | int, meant: int) -> None:
    limit = f"nats.storageLimit={json.dumps(said)}"
    found = yaml.safe_load_all(helm("template", "jobs", str(CHART), "--set-json", limit))
    [gateway] = [one for one in found if one["kind"] == "Deployment" and one["metadata"]["name"] == "jobs-gateway"]
    assert environment(gateway)["OJS_STORAGE_LIMIT"] == str(meant)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("gateway: {nodeSelector: {a: b}}", "nodeSelector"),
        ("nats: {storageLimit: 100GB}", "storageLimit"),
        ("nats: {replica: 3}", "replica"),
        ("keda: {keySecret: k, workers: [{deployment: a, quue: b, jobs: 1}]}", "quue"),
        ("keda: {keySecret: k, workers: [{deployment: a, queue: b}]}", "jobs"),
        ("settings: {OJS_PORT: 8081}", "OJS_PORT"),
        ("settings: {OJS_STRICT: [1]}", "OJS_STRICT"),
        ("projector: {replicas: two}", "replicas"),
        ("setting: {}", "setting"),
    ],
)
def test_a_value_that_the_chart_does_not_know_is_refused(values: str, named: str, tmp_path: Path) -> None:
    assert named in refused(values, tmp_path)


def test_a_cluster_may_choose_the_user() -> None:
    for workload in workloads(values_of("openshift")):
        context = workload["spec"]["template"]["spec"]["securityContext"]
        assert context.keys() == {"runAsNonRoot", "seccompProfile"}


def test_with_users_each_process_has_its_own_file_and_inbox() -> None:
    for workload in workloads(values_of("guarded"), "Job"):
        settings = settings_of(workload)
        for role in ("scheduler", "operator"):
            address = settings.nats_of(role)
            assert f"inbox_prefix=_INBOX_shop_{role}" in address
            assert f"/etc/ojs-nats/creds/{role}.nk" in address
    [job] = [one for one in rendered(values_of("guarded")) if one["kind"] == "Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    [volume] = [one for one in job["spec"]["template"]["spec"]["volumes"] if one["name"] == "creds"]
    assert volume["secret"]["secretName"] == "ojs-operator", "the processes don't have the operator's"


def test_the_files_of_the_secret_are_named_where_it_is_asked_for() -> None:
    said = (CHART / "values.yaml").read_text(encoding="utf-8")
    page = (CHART.parents[2] / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    for role in (*ROLES, *(role for grants in GRANTS for role in grants.roles), ANSWERING):
        assert f"{role}.nk" in said
        assert f"{role}.nk" in page


def test_the_first_key_is_made_with_what_nats_asks_for(tmp_path: Path) -> None:
    said = notes(values_of("guarded"), tmp_path)
    [found] = re.findall(r"(kubectl -n \S+ run ojs-key [^\n]*\\\n[^\n]*)", said)
    [overrides] = [word.partition("=")[2] for word in shlex.split(found) if word.startswith("--overrides=")]
    spec = json.loads(overrides)["spec"]
    [container] = spec["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    settings = load({"nats": container["args"][container["args"].index("--nats") + 1]}, variables, OF_FEATURES).settings
    assert "/etc/ojs-nats/creds/operator.nk" in settings.nats_of("operator")
    assert "_INBOX_shop_operator" in settings.nats_of("operator")
    assert {one["secret"]["secretName"] for one in spec["volumes"]} == {"ojs-operator", "nats-ca"}


def test_without_users_the_notes_make_a_key_in_one_line(tmp_path: Path) -> None:
    said = notes(values_of("defaults"), tmp_path)
    assert "keys create --name ops --role admin --nats 'nats://nats.nats.svc:4222'" in said


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
    assert environment(guarded)["OJS_NATS_CREDS"] == "/etc/ojs-nats/creds/{role}.nk"
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
    (reference,) = named(values, "TriggerAuthentication")["jobs-workers"]["spec"]["secretTargetRef"]
    assert reference == {"parameter": "token", "name": "keda-key", "key": "key"}


def test_keda_keeps_workers_that_work_and_those_that_run_while_nobody_answers() -> None:
    mail, video = (named(values_of("scaled"), "ScaledObject")[name]["spec"] for name in ("mail-worker", "video-worker"))
    assert (mail["cooldownPeriod"], mail["pollingInterval"], mail["minReplicaCount"]) == (300, 15, 0)
    assert mail["fallback"] == {"failureThreshold": 4, "replicas": 1, "behavior": "currentReplicasIfHigher"}
    assert mail["triggers"][0]["metricType"] == "AverageValue", "fallback is for this kind alone"
    assert (video["cooldownPeriod"], video["fallback"]) == (3600, mail["fallback"] | {"replicas": 2})


def test_keda_without_a_key_is_refused(tmp_path: Path) -> None:
    assert "keda.keySecret is missing" in refused("keda: {workers: [{deployment: a, queue: b, jobs: 1}]}", tmp_path)
