"""The chart has KEDA read what a gateway answers."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml  # type: ignore[import-untyped]  # read for tests; stubs would be one more package

from support.system import System
from support.waiting import until

CHART = Path(__file__).parents[2] / "deploy" / "chart" / "ojs-nats"
HELM = str(Path(sys.executable).with_name("helm"))


def trigger() -> dict[str, str]:
    """The settings of the trigger for the queue `mail`."""
    command = [HELM, "template", "jobs", str(CHART), "--values", str(CHART / "ci" / "scaled.yaml")]
    found = yaml.safe_load_all(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    [mail] = [one for one in found if one["metadata"]["name"] == "mail-worker"]
    metadata: dict[str, str] = mail["spec"]["triggers"][0]["metadata"]
    return metadata


def test_keda_finds_the_jobs_that_wait_and_run(system: System) -> None:
    metadata = trigger()
    address = f"{system.url}{urlsplit(metadata['url']).path}"

    def value() -> Any:
        """Return what KEDA reads: a request without a media type, and a path of members into the answer."""
        headers = {"Authorization": "Bearer x", "User-Agent": "Go-http-client/1.1", "Accept-Encoding": "identity"}
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
            found: Any = json.loads(answer.read())
        for member in metadata["valueLocation"].split("."):
            found = found[member]
        return found

    for _ in range(3):
        system.push("mail.send", queue="mail")
    [job] = system.fetch("mail", worker_id="w")
    until(lambda: value() == 3)
    system.call("POST", "/workers/ack", {"job_id": job["id"], "worker_id": "w"})
    until(lambda: value() == 2)
