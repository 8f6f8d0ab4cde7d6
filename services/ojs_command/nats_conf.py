"""`ojs-nats nats-conf`: prints the configuration that nats-server needs, by size and place, and the users of all roles.

Their keys are nkeys: the configuration has the public ones alone, so it holds no secret. The seeds go to files.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

from ojs_command.client.parser import CommandParser
from ojs_command.server_conf import (
    FILE_GB,
    ServerPlace,
    Sync,
    TlsFiles,
    file_gb,
    leaf_configuration,
    server_configuration,
)
from ojs_engine.base.numbers import whole_number
from ojs_engine.base.problems import CANNOT_START, StartupProblem
from ojs_engine.jetstream.grants import Grants, Team, all_grants
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig, checked_namespace
from ojs_link.address import masked
from ojs_link.login import LoginProblem, new_seed, read_login
from ojs_runtime.addresses import is_loopback
from ojs_runtime.settings import NAMESPACE_ENV

_FOLDER: Final = Path("nats-users")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,254}")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9a-fA-F:.]+\]")
_HUB: Final = re.compile(r"(nats-leaf|nats|tls|ws|wss)://[^\s\"]+")
_NUMBER: Final = re.compile(r"[0-9]{1,2}", re.ASCII)
_MOST_SERVERS: Final = 7
_MOST_JOBS: Final = 10_000_000_000
_MOST_PORT: Final = 65_535
_ALONE: Final = ("users", "seeds", "namespace", "account", "test_mode", "team", "command", "act")
"""What isn't about the server itself."""
_EPILOG: Final = """\
examples:
  ojs-nats nats-conf > nats.conf                            one server that loses nothing to a power cut
  ojs-nats nats-conf --jobs 5000000 --sync 2m > nats.conf   room for five million jobs, and ten times the throughput
  ojs-nats nats-conf --cluster 3 --node 1 --users > nats.conf
                                                            the first of three, nats-1.internal, with the users of all roles
  ojs-nats nats-conf --leaf nats-leaf://hub.internal:7422   a server at the edge, for workers and producers there
  ojs-nats nats-conf --users > users.conf                   users for all services, a client, a worker and the operator
  ojs-nats nats-conf --users --seeds /etc/ojs-nats/nats     their seeds there: gateway.nk, scheduler.nk …
  ojs-nats nats-conf --users --team shop=email,invoices --team media=thumbnails
                                                            a client and a worker for each team, held to its queues

--users alone prints the section of users, to be included. Run it again after an upgrade: a seed that is there stays.
Give each process its seed, and make the streams once, as the operator:
  ojs-nats setup --nats 'nats://nats.internal:4222?inbox_prefix=_INBOX_ojs_{role}' --nats-creds '/etc/ojs-nats/nats/{role}.nk'

'nats-server -t -c FILE' checks what comes out.
"""


def define(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = _EPILOG
    parser.set_defaults(act=print_configuration)
    room = parser.add_mutually_exclusive_group()
    sizes = ", ".join(f"{size} {gigabytes} GB" for size, gigabytes in FILE_GB.items())
    room.add_argument("--size", choices=list(FILE_GB), help=f"how much it may store: {sizes} [small]")
    room.add_argument("--jobs", type=int, metavar="N", help="the same by the jobs that are stored at a time, finished ones too")
    parser.add_argument(
        "--cluster",
        type=_hosts,
        metavar="N|HOST,…",
        help="one of so many servers, an odd number, nats-1.internal and so on, or of these hosts",
    )
    parser.add_argument("--node", type=int, metavar="N", help="which of them [1]")
    parser.add_argument("--host", type=_host, help="address of a single server or a leaf [127.0.0.1]")
    parser.add_argument("--port", type=_port, metavar="PORT", help="where services and clients connect [4222]")
    parser.add_argument(
        "--monitor-port",
        type=_port,
        metavar="PORT",
        help="where it tells health and figures, on 127.0.0.1 alone [8222]; each server of one machine needs its own",
    )
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="where it stores [/var/lib/nats]")
    parser.add_argument(
        "--sync",
        choices=get_args(Sync),
        help="when a write is forced to the disk: always, before it is acknowledged, or every two minutes "
        "[always; 2m on a cluster]",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate (PEM), for clients and other servers")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key (PEM)")
    parser.add_argument("--tls-ca", type=Path, metavar="FILE", help="CA (PEM) whose certificates the servers of a cluster show")
    parser.add_argument("--leaf-port", type=_port, metavar="PORT", help="take leaf nodes there, usually 7422")
    parser.add_argument("--leaf", metavar="URL,…", help="a leaf node that connects to these, without storage of its own")
    login = parser.add_mutually_exclusive_group()
    login.add_argument("--leaf-creds", type=Path, metavar="FILE", help="a .creds file that the leaf shows")
    login.add_argument("--leaf-seed", type=Path, metavar="FILE", help="a file with an nkey seed that the leaf shows")
    parser.add_argument("--users", action="store_true", default=False, help="the section of users")
    parser.add_argument("--seeds", type=Path, default=_FOLDER, metavar="FOLDER", help=f"where the secrets go [{_FOLDER}]")
    parser.add_argument(
        "--namespace",
        type=_namespace,
        default=os.environ.get(NAMESPACE_ENV, DEFAULT_NAMESPACE),
        metavar="NAME",
        help=f"of the system, as its services are started with [{NAMESPACE_ENV}, else {DEFAULT_NAMESPACE}]",
    )
    parser.add_argument("--account", default=None, metavar="NAME", help="put the users into an account of this name")
    parser.add_argument("--test-mode", action="store_true", default=False, help="with what --test-mode of the services needs")
    parser.add_argument(
        "--team",
        action="append",
        default=None,
        type=_team,
        metavar="NAME=QUEUE,…",
        help="a client and a worker for these queues, in place of those for all; any number of times",
    )


def print_configuration(given: argparse.Namespace) -> int:
    """The exit code."""
    from ojs_features.all import GRANTS  # noqa: PLC0415  # takes what only a server needs

    try:
        text = _server(given) if not given.users or any(name not in _ALONE for name in vars(given)) else ""
        if given.users:
            config, teams = StoreConfig(namespace=given.namespace), given.team or (Team(),)
            rows = all_grants(config, GRANTS, teams, test_mode=given.test_mode)
            text += users_section(rows, seeds(given.seeds, rows), given.account)
    except (StartupProblem, LoginProblem) as problem:
        print(f"ojs-nats nats-conf: {problem}", file=sys.stderr)
        return CANNOT_START
    print(text, end="")
    return 0


def _server(given: argparse.Namespace) -> str:
    """Return the server's own part. Raises StartupProblem for what doesn't go together."""
    found = vars(given)
    if "leaf" in found:
        return _leaf(found)
    for flag in ("leaf_creds", "leaf_seed"):
        if flag in found:
            raise StartupProblem(f"--{flag.replace('_', '-')} is what a leaf shows: name its hub with --leaf, too")
    hosts, node, jobs = found.get("cluster", ()), found.get("node", 1), found.get("jobs")
    if "node" in found and not hosts:
        raise StartupProblem("--node says which server of a cluster it is: name that with --cluster, too")
    if hosts and "host" in found:
        raise StartupProblem("--host is of a single server: the servers of a cluster have the addresses of --cluster")
    if hosts and not 1 <= node <= len(hosts):
        raise StartupProblem(f"--node {node} is none of 1 to {len(hosts)}, the servers of --cluster")
    if jobs is not None and not 1 <= jobs <= _MOST_JOBS:
        raise StartupProblem(f"--jobs {jobs} is not a number from 1 to {_MOST_JOBS}")
    place = _place(found, "host", "node", "port", "monitor_port", "store", "leaf_port", hosts=hosts)
    gigabytes = FILE_GB[found.get("size", "small")] if jobs is None else file_gb(jobs)
    if not given.users and not is_loopback(place.listens):
        print(
            "ojs-nats nats-conf: warning: without users, whoever reaches this server may do everything: add --users "
            "(docs/nats-users.md), or keep it in a private network",
            file=sys.stderr,
        )
    return server_configuration(place, gigabytes, found.get("sync", "2m" if hosts else "always"), _tls_files(found))


def _place(found: Mapping[str, Any], *names: str, **more: Any) -> ServerPlace:
    return ServerPlace(**{name: found[name] for name in names if name in found}, **more)


def _tls_files(found: Mapping[str, Any]) -> TlsFiles | None:
    cert, key, ca = (found.get(name) for name in ("tls_cert", "tls_key", "tls_ca"))
    if (cert is None) != (key is None) or (ca is not None and cert is None):
        raise StartupProblem("--tls-cert and --tls-key go together, and --tls-ca with both: name what is missing")
    return None if cert is None or key is None else TlsFiles(cert, key, ca)


def _leaf(found: Mapping[str, Any]) -> str:
    others = [name for name in found if name not in {*_ALONE, "leaf", "host", "port", "leaf_creds", "leaf_seed"}]
    if others or found["users"]:
        flag = (others or ["users"])[0].replace("_", "-")
        raise StartupProblem(f"--{flag} is of the server that a leaf connects to: a leaf stores nothing and has no users")
    hubs = [url for url in found["leaf"].split(",") if url]
    for url in hubs:
        if not _HUB.fullmatch(url):
            raise StartupProblem(f"--leaf {masked(url)} is not an address like nats-leaf://hub.internal:7422, or tls://…")
    return leaf_configuration(hubs, _place(found, "host", "port"), found.get("leaf_creds"), found.get("leaf_seed"))


def _hosts(text: str) -> tuple[str, ...]:
    hosts = tuple(f"nats-{n + 1}.internal" for n in range(int(text))) if _NUMBER.fullmatch(text) else tuple(text.split(","))
    if not 3 <= len(hosts) <= _MOST_SERVERS or len(hosts) % 2 == 0:
        raise argparse.ArgumentTypeError(
            f"{len(hosts)} servers are no odd number from 3 to {_MOST_SERVERS}: an even one survives no more than one less does"
        )
    return tuple(map(_host, hosts))


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a host name or an address")
    return text


def _port(text: str) -> int:
    port = whole_number(text, 5)
    if port is None or not 1 <= port <= _MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to {_MOST_PORT}")
    return port


def _namespace(text: str) -> str:
    try:
        return checked_namespace(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _team(text: str) -> Team:
    name, _, listed = text.partition("=")
    queues = tuple(queue for queue in listed.split(",") if queue)
    if not _NAME.fullmatch(name) or not queues or not all(map(_QUEUE.fullmatch, queues)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a team and its queues, like shop=email,invoices")
    return Team(name, queues)


def seeds(folder: Path, users: Mapping[str, object]) -> dict[str, str]:
    """Return the public key of each user; a seed that isn't in the folder is made, for its owner alone to read.

    Raises StartupProblem, LoginProblem.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {user: _public_key(folder / f"{user}.nk") for user in users}
    except LoginProblem:
        raise
    except OSError as error:
        raise StartupProblem(f"{error.filename or folder} can't be written: {error.strerror}; name another --seeds") from None


def _public_key(file: Path) -> str:
    seed, public = new_seed()
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        known = read_login(str(file)).public_key
        if known is None:
            raise StartupProblem(f"{file} is no nkey seed: move it away, or name another --seeds") from None
        return known
    with os.fdopen(descriptor, "w", encoding="ascii") as written:
        written.write(f"{seed}\n")
    return public


def users_section(rows: Mapping[str, Grants], keys: Mapping[str, str], account: str | None = None) -> str:
    """Return the section of a configuration."""
    users = "\n".join(_user(user, row, keys[user]) for user, row in rows.items())
    head = "# Written by 'ojs-nats nats-conf --users'. The keys are public; the seeds are secret.\n"
    if account is None:
        return f"{head}authorization {{\n  users = [\n{users}\n  ]\n}}\n"
    return f"{head}accounts {{\n  {account}: {{ jetstream: enabled, users = [\n{users}\n  ] }}\n}}\n"


def _user(user: str, row: Grants, key: str) -> str:
    publish = _listed(row.publish)
    if row.not_publish:
        publish = f"{{ allow: {publish}, deny: {_listed(row.not_publish)} }}"
    subscribe = _listed(row.subscribe)
    return f"    # {user}\n    {{ nkey: {key}, permissions: {{\n      publish: {publish}\n      subscribe: {subscribe} }} }}"


def _listed(subjects: list[str]) -> str:
    return "[\n" + "".join(f"        {json.dumps(subject)}\n" for subject in subjects) + "      ]"
