"""A distributed system on one machine, to try and to break: three nats-servers and two of each service (`just cluster`)."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from pathlib import Path

from support.cluster import NatsCluster
from support.system import Processes


def main() -> int:
    """Start everything, say where it is, and wait for Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data/cluster"), help="folder of all files (default: %(default)s)")
    folder: Path = parser.parse_args().data.resolve()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print("starting three nats-servers and two of each service …", file=sys.stderr, flush=True)
    with (
        contextlib.suppress(KeyboardInterrupt),
        NatsCluster(folder / "nats") as cluster,
        Processes.two_of_each(folder / "services", cluster.url, "--replicas", "3") as gateways,
    ):
        print(f"gateways:  {'  '.join(gateways)}")
        print(f"NATS:      {cluster.url}")
        print(f"logs:      {folder}/services/*.log, {folder}/nats/*/nats-server.log")
        print("Ctrl-C stops everything. What you kill meanwhile stays away until you start it.", flush=True)
        while True:
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
