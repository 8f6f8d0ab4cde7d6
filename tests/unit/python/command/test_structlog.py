"""An application's structlog, which a worker configures once it is imported."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import sys
from ojs_nats._command import logs

logs.configure(instance="w1", log_format="json", level="info")
print(sorted({"structlog", "rich"} & set(sys.modules)))
import structlog
structlog.get_logger().info("sent", order=7)
structlog.get_logger().debug("isn't logged")
"""


def test_an_applications_structlog_is_configured_when_it_is_imported_and_not_imported_before() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    [loaded, line] = run.stdout.splitlines()
    assert loaded == "[]"
    said = json.loads(line)
    assert (said["event"], said["order"], said["instance"]) == ("sent", 7, "w1")
