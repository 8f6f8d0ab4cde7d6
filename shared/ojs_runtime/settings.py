"""The settings of every process: one struct, one table that says where each of them may be written.

Flags win over the environment (`OJS_…`), the environment over a TOML file, the file over the defaults. Everything is read
and checked together, so that one message lists all that is wrong, under the names the user wrote.
"""

from __future__ import annotations

import difflib
import os
import socket
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from ojs_api import words
from ojs_api.keys import MOST
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.base.problems import StartupProblem, WrongCommandLine
from ojs_engine.domain.storage_room import RESERVE_BYTES
from ojs_engine.domain.strict import Strict
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig
from ojs_link.address import Address, read_address
from ojs_runtime import setting_readers
from ojs_runtime.proxies import ForwardedBy

CONFIG_ENV: Final = "OJS_CONFIG"
NAMESPACE_ENV: Final = "OJS_NAMESPACE"
"""The variable of the option, for commands that aren't services."""
DEFAULT_FILE: Final = Path("ojs-nats.toml")
DEFAULT_SOURCE: Final = "default"
_PREFIX: Final = "OJS_"
_OTHERS: Final = frozenset({CONFIG_ENV, "OJS_CA_FILE", "OJS_CERT_FILE", "OJS_KEY_FILE"})
"""Variables that are no settings, though they look like some: where these are, and files of clients."""

NatsApiMode = setting_readers.NatsApiMode
"""Whether requests over NATS need a key: `auto` once there are keys."""
RequestLogMode = Literal["off", "errors", "all"]
"""Which HTTP requests have a line in the log."""
SettingKind = str
"""The kind of a command: `gateway`, `projector`, `service` for another service, `services` for several beside a gateway, `dev`
for all on one machine, `setup`, `config`, or the name of a feature's process.
"""
OF_FEATURE: Final = "feature"
"""The kinds of all processes of features."""

_NATS: Final = frozenset({"gateway", "projector", OF_FEATURE, "service", "services", "dev", "setup", "config"})
_EVERY: Final = _NATS - {"setup"}
_ENQUEUES: Final = frozenset({"gateway", "service", "services", "dev", "config"})
_HTTP: Final = frozenset({"gateway", "dev", "config"})
_GATEWAY: Final = frozenset({"gateway", "config"})
_PROJECTOR: Final = frozenset({"projector", "services", "config"})
_INDEXES: Final = frozenset({"projector", "services", "dev", "config"})
_ONE: Final = frozenset({"gateway", "projector", OF_FEATURE, "service", "services", "config"})
_DEV: Final = frozenset({"dev", "config"})


def _instance() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What one process works with. `OPTIONS` explains each field; sizes are in bytes, times in seconds."""

    nats: str = "nats://127.0.0.1:4222"
    nats_creds: Path | None = None
    nats_ca: Path | None = None
    nats_cert: Path | None = None
    nats_key: Path | None = None
    namespace: str = DEFAULT_NAMESPACE
    replicas: int = 1
    audit_days: int = 0
    connect_timeout: float = 30.0
    host: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    port: int = 8080
    api_key: str | None = None
    api_key_file: Path | None = None
    insecure: bool = False
    processes: int = 1
    allowed_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    forwarded_by: ForwardedBy = "x-forwarded"
    proxy_protocol: bool = False
    path_prefix: str = ""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    client_ca: Path | None = None
    max_connections: int = 10_000
    max_connections_per_address: int = 1_000
    idle_timeout: float = 115.0
    request_log: RequestLogMode = "off"
    key_pushes_per_second: int = 0
    dashboard: bool = True
    nats_api: NatsApiMode = "auto"
    nats_api_url: str | None = None
    health_port: int | None = 0
    drain_delay: float = 0.0
    health_host: str = "127.0.0.1"
    storage_limit: int = 0
    storage_reserve: int = RESERVE_BYTES
    storage_folder: Path | None = None
    max_body_bytes: int = DEFAULT_LIMITS.max_body_bytes
    max_envelope_bytes: int = DEFAULT_LIMITS.max_envelope_bytes
    default_wait_ms: int = DEFAULT_LIMITS.default_wait_ms
    strict: bool = False
    allowed_types: tuple[str, ...] = ()
    otlp_endpoint: str | None = None
    test_mode: bool = False
    projector_data: Path = Path("data/projector")
    dead_letter_max_count: int = 10_000
    data: Path = Path("data")
    nats_port: int = 4222
    nats_server: str = "auto"
    together: bool = False
    apart: bool = False
    log_format: words.LogFormat = "auto"
    log_level: words.LogLevel = "info"
    instance: str = msgspec.field(default_factory=_instance)
    features: dict[Option, Any] = {}
    """The values of features' options."""

    @property
    def strict_mode(self) -> Strict | None:
        """What new jobs are held to in strict mode, None where it is off."""
        return Strict(self.allowed_types) if self.strict else None

    def value(self, option: Option) -> Any:
        """Return what counts for an option."""
        return self.features[option] if option in self.features else getattr(self, option.name, option.initial)

    def environment(self, kind: SettingKind) -> dict[str, str]:
        """The environment variables that give a process of this kind these settings; `instance` stays its own."""
        return {
            option.env: setting_readers.written(self.value(option))
            for option in (*OPTIONS, *self.features)
            if option.is_of(kind) and option.name != "instance"
        }

    @property
    def streams(self) -> StoreConfig:
        """The names of everything stored, and how it is kept."""
        return StoreConfig(namespace=self.namespace, replicas=self.replicas, audit_days=self.audit_days)

    def nats_of(self, role: str) -> str:
        """The address of NATS with its files, as a process of a role uses it."""
        return self._with_files(self.nats).of_role(role).url

    @property
    def nats_for_answers(self) -> str:
        """The same for the connection that takes requests over NATS and answers them."""
        return self._with_files(self.nats_api_url or self.nats).of_role("gateway-api" if self.nats_api_url else "gateway").url

    def _with_files(self, url: str) -> Address:
        """Raises ValueError."""
        files = {"creds": self.nats_creds, "ca": self.nats_ca, "cert": self.nats_cert, "key": self.nats_key}
        return read_address(url).with_files({name: str(path) for name, path in files.items() if path is not None})


class Option(msgspec.Struct, frozen=True):
    """One row of the table: a field of `Settings`, or a value of a feature's, and how it is written."""

    name: str
    read: setting_readers.Reader
    metavar: str
    help: str
    kinds: frozenset[SettingKind] = _EVERY
    default: str | None = None
    """How the default reads where it is not a constant."""
    standard_env: str | None = None
    """A variable of others that counts where the option is written nowhere."""
    alone: str | None = None
    """What the flag means without a value; `--no-…` is `off` then."""
    initial: Any = None
    """The default of an option of a feature. `Settings` has the others."""
    secret: bool = False
    """Whether it is for the environment or a file alone: other users of a machine see command lines."""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def env(self) -> str:
        return f"{_PREFIX}{self.name.upper()}"

    @property
    def default_text(self) -> str:
        """The default as the user would write it; empty if it is an empty list."""
        return self.default or setting_readers.written(Settings().value(self))

    def is_of(self, kind: SettingKind) -> bool:
        """Return whether a command takes it."""
        return kind in self.kinds or (OF_FEATURE in self.kinds and kind not in _NATS)


OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        "nats",
        setting_readers.nats_urls,
        "URL",
        "NATS server, or a comma list of the servers of one cluster; `dev` starts its own server unless this is given; "
        "?inbox_prefix=_INBOX_ojs_{role} behind it if its user may listen to answers below that only. "
        "NATS_URL counts where it is written nowhere, but not for `dev`",
        _NATS,
        standard_env="NATS_URL",
    ),
    Option(
        "nats_creds",
        setting_readers.optional_path,
        "FILE|off",
        "credentials for NATS: a .creds file, an nkey seed, user:password or a token, read anew at each connection; {role} in "
        "the name stands for gateway, scheduler …",
        _NATS,
    ),
    Option(
        "nats_ca",
        setting_readers.optional_path,
        "FILE|off",
        "certificates (PEM) of the CAs that NATS's certificate may be of; off: those that the system trusts",
        _NATS,
    ),
    Option("nats_cert", setting_readers.optional_path, "FILE|off", "certificate (PEM) that this process shows NATS", _NATS),
    Option("nats_key", setting_readers.optional_path, "FILE|off", "key (PEM) of that certificate, unencrypted", _NATS),
    Option(
        "namespace",
        setting_readers.namespace,
        "NAME",
        "how everything of this system in NATS is named: subjects, streams and the bucket begin with it, so that several "
        "systems can share an account; 1 to 32 of a-z, 0-9 and -, the same for all its processes",
        _NATS,
    ),
    Option(
        "replicas",
        setting_readers.integer(1, 5),
        "N",
        "copies that NATS keeps of everything: 1 on a single server, 3 or 5 on a cluster",
        _NATS,
    ),
    Option(
        "audit_days",
        setting_readers.integer(0, 3_650),
        "DAYS",
        "how long the audit is kept, in the whole system; 0: as it is, 90 where it begins",
        _NATS,
    ),
    Option(
        "connect_timeout",
        setting_readers.seconds(0, 3600),
        "SECONDS",
        "how long a starting process waits for NATS before it gives up",
    ),
    Option(
        "host",
        setting_readers.text,
        "ADDRESS",
        "address of the HTTP API; 0.0.0.0 for all. Beyond loopback it needs keys (docs/security.md), or --insecure",
        _HTTP,
    ),
    Option(
        "allowed_hosts",
        setting_readers.host_names,
        "NAME,…",
        "further names that clients may call this server by (Host), * for any; without it, a server on loopback goes by the "
        "names of loopback alone, any other by every name",
    ),
    Option(
        "api_key",
        setting_readers.api_key,
        "KEY|off",
        "a key that may do everything, beside those that are made with 'ojs-nats keys create'; the same for all gateways",
        _HTTP,
        secret=True,
    ),
    Option("api_key_file", setting_readers.optional_path, "FILE|off", "a file with a key that may do everything", _HTTP),
    Option(
        "insecure",
        setting_readers.boolean,
        "",
        "listen beyond loopback though there are no keys: everybody who reaches the address may do everything",
        _HTTP,
    ),
    Option("port", setting_readers.integer(0, 65535), "PORT", "port of the HTTP API; 0 for any free one", _HTTP),
    Option(
        "processes",
        setting_readers.integer(1, 64),
        "N",
        "gateway processes that share the port; more than the machine has processors won't help",
        _HTTP,
    ),
    Option(
        "allowed_origins",
        setting_readers.origins,
        "URL,…",
        "origins whose web pages may use the API (CORS, WebSocket), for example https://jobs.example.com; without it, none but "
        "the server's own",
        _HTTP,
    ),
    Option(
        "trusted_proxies",
        setting_readers.networks,
        "NETWORK,…",
        "addresses or networks of the proxies in front, such as 127.0.0.1 or 10.1.0.0/16: what they say of a client's "
        "address, scheme and host counts. Without it, such headers mean nothing",
        _HTTP,
    ),
    Option(
        "forwarded_by",
        setting_readers.choice(*get_args(ForwardedBy)),
        "x-forwarded|forwarded",
        "the headers that trusted_proxies write: X-Forwarded-For, -Proto and -Host, or Forwarded (RFC 7239)",
        _HTTP,
    ),
    Option(
        "proxy_protocol",
        setting_readers.boolean,
        "",
        "connections from trusted_proxies begin with the PROXY protocol (version 1 or 2), as TCP load balancers send it",
        _HTTP,
    ),
    Option(
        "path_prefix",
        setting_readers.path_prefix,
        "PATH|off",
        "the path below which clients reach dashboard and API through a proxy, such as /jobs; the proxy may take it off "
        "or leave it",
        _HTTP,
    ),
    Option(
        "tls_cert",
        setting_readers.optional_path,
        "FILE|off",
        "certificate of the HTTP API, in PEM, with those between it and its CA behind it: the API then speaks TLS alone; read "
        "again when it changes",
        _HTTP,
    ),
    Option(
        "tls_key",
        setting_readers.optional_path,
        "FILE|off",
        "the certificate's private key, in PEM, without a passphrase",
        _HTTP,
    ),
    Option(
        "client_ca",
        setting_readers.optional_path,
        "FILE|off",
        "CA, or several, in PEM: clients have to show a certificate of one of them; needs tls_cert",
        _HTTP,
    ),
    Option(
        "health_host",
        setting_readers.text,
        "ADDRESS",
        "address that health_port is on; 0.0.0.0 for all, for a Prometheus or an orchestrator on another machine",
        _ONE,
    ),
    Option(
        "health_port",
        setting_readers.health_port,
        "PORT|off",
        "port of /healthz, /readyz and /metrics: of a service without an HTTP API, of a gateway beside its own port, or of the "
        "first of several gateway processes (the others have those after it); 0 for any free one where one is needed",
        _ONE,
    ),
    Option(
        "drain_delay",
        setting_readers.seconds(0, 300),
        "SECONDS",
        "how long a gateway that is told to stop says that it isn't ready (/readyz) while it still answers, so that balancers "
        "send nobody any more; a second signal ends that",
        _GATEWAY,
    ),
    Option(
        "storage_limit",
        setting_readers.integer(0, 1 << 50),
        "BYTES",
        "max_file_store of nats-server, of each on a cluster; 0: not known, so only a limit of the account counts",
    ),
    Option(
        "storage_reserve",
        setting_readers.integer(0, 1 << 40),
        "BYTES",
        "what new jobs leave of the storage, so that those that are there can be finished; at most an eighth of it",
    ),
    Option(
        "storage_folder",
        setting_readers.optional_path,
        "FOLDER|off",
        "a folder on nats-server's disk, if that is on this machine: its free room counts, too; `dev` knows its own",
    ),
    Option(
        "max_connections",
        setting_readers.integer(1, 1_000_000),
        "N",
        "connections that a gateway takes at a time; fewer if the limit of open files (its hard one) is lower",
        _HTTP,
    ),
    Option(
        "max_connections_per_address",
        setting_readers.integer(0, 1_000_000),
        "N",
        "the same from one address, other than loopback and trusted_proxies, whose clients are counted each; 0 for any number",
        _HTTP,
    ),
    Option(
        "idle_timeout",
        setting_readers.seconds(0.1, 3600),
        "SECONDS",
        "how long a connection may stay open without a request; longer than the proxy in front keeps its own",
        _HTTP,
    ),
    Option(
        "request_log",
        setting_readers.choice(*get_args(RequestLogMode)),
        "off|errors|all",
        "a line in the log for each HTTP request, or for each that was refused or failed: method, route, status, time, key",
        _HTTP,
    ),
    Option(
        "key_pushes_per_second",
        setting_readers.integer(0, MOST),
        "N",
        "jobs a second that each key may push through a gateway, unless 'ojs-nats keys limit' says otherwise; 0 for any number",
        _HTTP,
    ),
    Option("dashboard", setting_readers.boolean, "", "serve the dashboard at /", _HTTP),
    Option(
        "nats_api",
        setting_readers.nats_api,
        "open|keys|off",
        "answer the API over NATS, too: requests on ojs.api.>, as many at a time as there may be connections. open: of every "
        "NATS user who may ask there; keys: with a key in Authorization; auto: open while there are no keys",
        _HTTP,
        alone="auto",
    ),
    Option(
        "nats_api_url",
        setting_readers.other_nats_urls,
        "URL|off",
        "NATS as another user, who takes the requests on ojs.api.> and need publish to clients' inboxes alone; "
        "off: as the user of --nats",
        _GATEWAY,
    ),
    Option(
        "max_body_bytes",
        setting_readers.integer(1_048_576, 67_108_864),
        "BYTES",
        "largest request body, after decompression",
        _HTTP,
    ),
    Option(
        "max_envelope_bytes",
        setting_readers.integer(1_024, 7_340_032),
        "BYTES",
        "largest job; Open Job Spec asks for at least 1048576",
        _HTTP,
    ),
    Option(
        "default_wait_ms",
        setting_readers.integer(0, DEFAULT_LIMITS.max_wait_ms),
        "MS",
        "how long a fetch that names no wait_ms waits for a job; no official SDK names one, and 10000 suits their workers; 0 "
        "answers at once",
        _HTTP,
    ),
    Option(
        "strict",
        setting_readers.boolean,
        "",
        "refuse new jobs whose type is not registered, with attributes that Open Job Spec doesn't define, or with metadata "
        "that could do harm in headers; set it for gateways and schedulers alike",
        _ENQUEUES,
    ),
    Option(
        "allowed_types",
        setting_readers.job_types,
        "TYPE,…",
        "with strict, job types that are registered although they have no schema; mail.* for all that begin with mail.",
        _ENQUEUES,
    ),
    Option(
        "otlp_endpoint",
        setting_readers.endpoint,
        "URL|off",
        "collector of OpenTelemetry traces (OTLP over HTTP), for example http://127.0.0.1:4318; needs the extra otel",
        _ENQUEUES,
        default="OTEL_EXPORTER_OTLP_ENDPOINT, else off",
        standard_env="OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    Option(
        "test_mode",
        setting_readers.boolean,
        "",
        "for conformance runs: anyone may wipe everything with POST /ojs/v1/admin/reset; all processes need it",
    ),
    Option(
        "projector_data",
        setting_readers.path,
        "FOLDER",
        "where a projector keeps its index, which it can build anew; `dev` keeps it in its own folder",
        _PROJECTOR,
    ),
    Option(
        "dead_letter_max_count",
        setting_readers.integer(0, 10_000_000),
        "N",
        "dead letters that each queue keeps, the newest, unless its configuration says otherwise; 0 for any number",
        _INDEXES,
    ),
    Option("data", setting_readers.path, "FOLDER", "where `dev` keeps NATS' files, its log and run.json", _DEV),
    Option(
        "nats_port",
        setting_readers.integer(0, 65535),
        "PORT",
        "port of the NATS server that `dev` starts; 0 for any free one",
        _DEV,
    ),
    Option(
        "nats_server",
        setting_readers.text,
        "PROGRAM",
        "the nats-server that `dev` starts; auto: the one beside this Python, then the one on the PATH",
        _DEV,
    ),
    Option(
        "together",
        setting_readers.boolean,
        "",
        "run all services in the process of `dev`: they start sooner and take less than half of the memory, which suits "
        "tests; one that crashes ends all of them",
        _DEV,
    ),
    Option(
        "apart",
        setting_readers.boolean,
        "",
        "run each service in a process of its own; else the gateway and the projector have one each, and the others share one",
        _DEV,
    ),
    Option(
        "log_format",
        setting_readers.choice(*get_args(words.LogFormat)),
        "FORMAT",
        "console (for people), json (one object a line) or auto: console on a terminal",
    ),
    Option("log_level", setting_readers.choice(*get_args(words.LogLevel)), "LEVEL", "debug, info, warning or error"),
    Option(
        "instance", setting_readers.text, "NAME", "name of this process in logs, unique among all", _ONE, default="host:pid"
    ),
)

GONE: Final = {
    "copied_jobs": "lists have copies of jobs up to 4,000 bytes",
    "dashboard_read_only": "give those who only look a key of the role viewer, or serve no page with no-dashboard",
    "enqueue_middleware": "middleware around pushes is the client's (app.enqueue in Python)",
    "header_timeout": "the head of a request has 20 s",
    "inbox_prefixes": "answers over NATS go to subjects that begin with _INBOX: let the prefixes of clients begin so",
    "key_streams": "each key may have 200 open; 'ojs-nats keys limit --streams' gives a key another number",
    "key_waiting": "2,000 may wait for each key; 'ojs-nats keys limit --waiting' gives a key another number",
    "searched_args": "jobs aren't found by words of their arguments: give them tags or members of meta, which are filters",
    "trace_url": "the dashboard shows the id of a job's trace, to be copied",
    "unconfirmed_bulk": "send confirm: true, or name a type or a queue",
}
"""Settings of earlier versions, each with what holds now. One that is given is refused: nobody is to believe that it counts."""


def gone(written_as: str, name: str) -> str | None:
    """Return why a setting of an earlier version can't be given any more; None for any other name."""
    return f"{written_as}: there is no such setting any more; {GONE[name]}. Leave it out" if name in GONE else None


class Loaded(msgspec.Struct, frozen=True):
    """The settings and, for each name, where its value was written: a flag, a variable, a file, or `default`."""

    settings: Settings
    sources: dict[str, str]


def load(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    features: Sequence[Option] = (),
    *,
    file: str | None = None,
    problems: Sequence[str] = (),
) -> Loaded:
    """Read the settings of one process.

    `flags` are the values given on the command line by option name, `features` the options of features, `file` the TOML file
    given there, `problems` what the command line itself got wrong. Raises `StartupProblem` with everything that is wrong,
    `WrongCommandLine` if some of it is on the command line.
    """
    found = list(problems)
    values: dict[str, Any] = {}
    options = (*OPTIONS, *features)
    by_name, by_env = {option.name: option for option in options}, {option.env: option for option in options}
    sources = {option.name: DEFAULT_SOURCE for option in options}

    def take(option: Option, raw: object, written_as: str, source: str) -> None:
        try:
            values[option.name] = option.read(raw)
            sources[option.name] = source
        except ValueError as error:
            found.append(f"{written_as}: {error}")

    file_name, table = _file(file or environ.get(CONFIG_ENV), found)
    for key, raw in table.items():
        if option := by_name.get(key):
            take(option, raw, f"{key} in {file_name}", file_name)
        else:
            place = f"{key} in {file_name}"
            found.append(gone(place, key) or f"{place}: unknown name{_suggestion(key, by_name)}")
    for variable, text in environ.items():
        if option := by_env.get(variable):
            take(option, text, variable, variable)
        elif problem := variable.startswith(_PREFIX) and gone(variable, variable.removeprefix(_PREFIX).lower()):
            found.append(problem)
        elif _misspelt(variable, by_env):
            found.append(f"{variable}: unknown name{_suggestion(variable, by_env)}")
    before = len(found)
    for name, raw in flags.items():
        take(by_name[name], raw, by_name[name].flag, by_name[name].flag)
    kind = WrongCommandLine if problems or len(found) > before else StartupProblem
    for option in options:
        standard = option.standard_env
        if standard is not None and environ.get(standard) and sources[option.name] == DEFAULT_SOURCE:
            take(option, environ[standard], standard, standard)

    of_features = {option: values.pop(option.name, option.initial) for option in features}
    settings = Settings(**values, features=of_features)
    if not found and settings.max_envelope_bytes > settings.max_body_bytes:
        found.append(
            f"max_envelope_bytes ({settings.max_envelope_bytes}) is more than max_body_bytes ({settings.max_body_bytes}); "
            "a job has to fit into a request"
        )
    if not found:
        try:
            settings.nats_of("config")
            settings.nats_for_answers  # noqa: B018  # raises for what doesn't go together
        except ValueError as error:
            found.append(f"nats: {error}")
    if not found and settings.allowed_types and not settings.strict:
        found.append("allowed_types has no effect without strict; set strict, or leave allowed_types out")
    if not found and settings.proxy_protocol and not settings.trusted_proxies:
        found.append("proxy_protocol has no effect without trusted_proxies; name the load balancers' addresses there")
    if not found:
        found += _tls_problems(settings)
    if found:
        raise kind(found[0] if len(found) == 1 else "\n  ".join([f"{len(found)} settings can't be used:", *found]))
    return Loaded(settings, sources)


def _tls_problems(settings: Settings) -> list[str]:
    """What is missing beside what is there."""
    found = []
    if settings.tls_cert is not None and settings.tls_key is None:
        found.append(f"tls_cert ({settings.tls_cert}) is set without tls_key: name the certificate's key, too")
    if settings.tls_key is not None and settings.tls_cert is None:
        found.append(f"tls_key ({settings.tls_key}) is set without tls_cert: name the key's certificate, too")
    if settings.client_ca is not None and settings.tls_cert is None:
        found.append(f"client_ca ({settings.client_ca}) is set without tls_cert: clients show certificates by TLS alone")
    return found


def _file(given: str | None, found: list[str]) -> tuple[str, dict[str, Any]]:
    path = Path(given).expanduser() if given else DEFAULT_FILE
    try:
        return str(path), tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if given:
            found.append(f"{path}: no such file")
    except (OSError, ValueError) as error:
        found.append(f"{path}: {error.strerror if isinstance(error, OSError) else error}")
    return str(path), {}


def _misspelt(variable: str, known: Mapping[str, Option]) -> bool:
    # Only near misses are refused: clients (OJS_URL) and Kubernetes' service links (OJS_PORT_8080_TCP) use the prefix, too.
    return variable.startswith(_PREFIX) and variable not in _OTHERS and bool(_suggestion(variable, known, 0.85))


def _suggestion(name: str, known: Mapping[str, Option], likeness: float = 0.6) -> str:
    close = difflib.get_close_matches(name, known, 1, likeness)
    return f" (did you mean {close[0]}?)" if close else ""
