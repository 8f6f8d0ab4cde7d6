"""Configurations of nats-server: what the services rely on, and what a size and a place in the system ask for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

Sync = Literal["always", "2m"]
Size = Literal["small", "medium", "large"]

MAX_PAYLOAD: Final = "8MB"
"""The largest message: jobs and their results may be 1 MiB each, and travel with what belongs to them."""
LIMITS: Final = """\
  limits {
    batch { max_inflight_per_stream: 500, max_inflight_total: 5000, max_msgs: 32000, timeout: "10s" }
  }"""
"""Limits of atomic batches, as which batch pushes are stored: nats-server's defaults are below what Open Job Spec wants."""
FILE_GB: Final[dict[Size, int]] = {"small": 20, "medium": 100, "large": 500}
"""`max_file_store` by size."""
_MEMORY_MB: Final = 256
KB_A_JOB: Final = 3.4
"""The disk that a stored job takes without its arguments and results (docs/performance.md)."""
_ROOM: Final = 2.0
"""How much more is given than the jobs take: for arguments, events, and what nats-server hasn't compacted yet."""
_LEAST_GB: Final = 2


class TlsFiles(Struct, frozen=True):
    """A certificate and its key (PEM), and the CA that the servers of a cluster show each other certificates of."""

    cert: Path
    key: Path
    ca: Path | None = None


class ServerPlace(Struct, frozen=True, kw_only=True):
    """Where one nats-server runs: alone on an address, or as one of the `hosts` of a cluster, counted from 1."""

    host: str = "127.0.0.1"
    hosts: tuple[str, ...] = ()
    node: int = 1
    port: int = 4222
    monitor_port: int = 8222
    """Where it tells its health and figures, to this machine alone."""
    store: Path = Path("/var/lib/nats")
    leaf_port: int | None = None
    """Where leaf nodes come in."""

    @property
    def listens(self) -> str:
        return self.hosts[self.node - 1] if self.hosts else self.host


def file_gb(jobs: int) -> int:
    """Return the `max_file_store` for so many stored jobs."""
    return max(_LEAST_GB, round(jobs * KB_A_JOB * _ROOM / 1_000_000 + 0.5))


def server_configuration(place: ServerPlace, gigabytes: int, sync: Sync, tls: TlsFiles | None = None) -> str:
    """Return the configuration of a server that keeps up to so many gigabytes."""
    name = f"nats-{place.node}" if place.hosts else "ojs-nats"
    return "\n".join(
        [
            f"server_name: {name}",
            "# Where services and clients connect. Beyond a private network it needs users and TLS.",
            f"host: {_quoted(place.listens)}",
            f"port: {place.port}",
            "# Health and figures: /healthz, /varz, /jsz. Nothing authenticates there.",
            f"http: {_quoted(f'127.0.0.1:{place.monitor_port}')}",
            f"max_payload: {MAX_PAYLOAD}",
            "",
            "jetstream {",
            f"  store_dir: {_quoted(place.store)}",
            f"  max_memory_store: {_MEMORY_MB}MB",
            "  # Less than the disk has. On a cluster, and with users, name it to the services, in bytes:",
            f"  # OJS_STORAGE_LIMIT={gigabytes << 30}",
            f"  max_file_store: {gigabytes}GB",
            *_syncing(sync, place),
            f"  sync_interval: {_quoted(sync) if sync != 'always' else sync}",
            LIMITS,
            "}",
            "",
            "max_pending: 64MB",
            'write_deadline: "10s"',
            *(_tls(tls, "") if tls is not None else ()),
            *(_cluster(place, tls) if place.hosts else ()),
            *(_leaves(place, tls) if place.leaf_port is not None else ()),
            "",
        ]
    )


def leaf_configuration(hubs: Sequence[str], place: ServerPlace, creds: Path | None, seed: Path | None) -> str:
    """Return the configuration of a server without storage at the edge, that has one outbound connection to `hubs`."""
    lines = [
        "server_name: ojs-nats-leaf",
        f"host: {_quoted(place.host)}",
        f"port: {place.port}",
        f"max_payload: {MAX_PAYLOAD}",
        "",
        "# Workers and producers here ask over NATS, as if they were at the hub.",
        "leafnodes {",
        "  remotes: [",
        "    {",
        f"      urls: [{', '.join(map(_quoted, hubs))}]",
        *([f"      credentials: {_quoted(creds)}"] if creds is not None else ()),
        *([f"      nkey: {_quoted(seed)}"] if seed is not None else ()),
        "    }",
        "  ]",
        "}",
        "",
    ]
    return "\n".join(lines)


def _syncing(sync: Sync, place: ServerPlace) -> list[str]:
    if sync == "always":
        return ["  # Each write is on the disk before it is acknowledged: a power cut loses nothing."]
    if place.hosts:
        return ["  # Each write is on two servers before it is acknowledged. If all share one power supply: always."]
    return ["  # A power cut may lose two minutes of acknowledged jobs; a restart of nats-server loses none."]


def _cluster(place: ServerPlace, tls: TlsFiles | None) -> list[str]:
    return [
        "",
        "# store_dir must be empty when it begins: a server that has stored alone loses its streams by joining a cluster",
        "# (docs/operations.md, From one server to three).",
        "cluster {",
        "  name: ojs-nats",
        f"  listen: {_quoted(f'{place.listens}:6222')}",
        "  routes: [",
        *(f"    {_quoted(f'nats://{host}:6222')}" for host in place.hosts),
        "  ]",
        *(_tls(tls, "  ", verify=tls.ca is not None) if tls is not None else ()),
        "}",
    ]


def _leaves(place: ServerPlace, tls: TlsFiles | None) -> list[str]:
    return [
        "",
        "leafnodes {",
        f"  listen: {_quoted(f'{place.listens}:{place.leaf_port}')}",
        *(_tls(tls, "  ") if tls is not None else ()),
        "}",
    ]


def _tls(files: TlsFiles, indent: str, *, verify: bool = False) -> list[str]:
    lines = ["tls {", f"  cert_file: {_quoted(files.cert)}", f"  key_file: {_quoted(files.key)}"]
    lines += [f"  ca_file: {_quoted(files.ca)}", "  verify: true"] if verify else []
    return [f"{indent}{line}" for line in (*lines, "}")]


def _quoted(value: object) -> str:
    return json.dumps(str(value), ensure_ascii=False)
