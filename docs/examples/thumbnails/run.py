"""All of the example with one command: `python run.py`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
OJS_NATS = [sys.executable, "-m", "ojs_nats"]
SERVER = os.environ.get("OJS_URL")
PATIENCE_S = 60.0


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        env = {"OJS_URL": "http://127.0.0.1:8080", "UPLOADS": str(Path(folder) / "uploads"), **os.environ}
        Path(env["UPLOADS"]).mkdir(parents=True, exist_ok=True)
        server = [] if SERVER else [[*OJS_NATS, "dev", "--data", folder, "--log-level", "warning"]]
        commands = [*server, [*OJS_NATS, "worker", "jobs"], [sys.executable, "web.py"]]
        running: list[subprocess.Popen[bytes]] = []
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            for command in commands:
                running.append(subprocess.Popen(command, cwd=HERE, env=env))
                wait_for(env["OJS_URL"])
            return running[-1].wait()
        except KeyboardInterrupt:
            return 0
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()


def wait_for(url: str) -> None:
    """Until the server answers."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    sys.exit(f"no OJS server answers at {url}")


if __name__ == "__main__":
    sys.exit(main())
