"""Runs the conformance cases named in claimed.txt against a server: its own, started here, or the one at --url.

--arrangement says what it starts: one command (dev), or two of each service on one nats-server (processes) or on a
cluster of three (cluster), where the requests of a case take turns between the two gateways; or what levels 0 and 1
need and no more (bare), for the cases of those two levels. --without leaves features out of dev and bare. With --keys it
asks for keys, and the runner shows one; with --tls it speaks TLS.

--verdicts runs all cases instead, and says where docs/conformance.md is wrong about them.

Exit status: that of the runner (0 all passed, 1 some failed, 2 nothing ran), 2 also if a pattern matches no case; with
--verdicts 1 if the page is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
_ROOT: Final = _HERE.parents[1]
_SLOW: Final = [f"!level-2-scheduled/cron/{name}.json" for name in ("cron-fires-on-schedule", "cron-overlap-prevention")]
_BARE: Final[dict[str, tuple[str, ...]]] = {
    "gateway": ("--no-dashboard", "--nats-api", "off"),
    "scheduler": (),  # of retries and delays
    "reaper": (),  # of leases and time-outs
    "projector": (),  # of the lists of dead letters and events
}
"""Services that levels 0 and 1 need, each with what is optional off: without any of them cases fail."""
_BASIC: Final = ("dead_letters", "events", "unique")
"""Features that cases of levels 0 and 1 need. The engine alone passes the others: bare --without these."""
_NEED: Final[dict[str, tuple[str, ...]]] = {
    "bulk": (
        "level-4-advanced/bulk/*",
        "ext-admin-api/admin-bulk-retry-safety.json",
        "ext-backpressure/backpressure-batch-partial-reject.json",
        "ext-fair-scheduling/fair-scheduling-round-robin.json",
        "ext-job-versioning/job-versioning-batch-mixed.json",
    ),
    "crons": ("level-2-scheduled/cron/*",),
    "dead_letters": ("level-1-reliable/dead-letter/*", "level-1-reliable/retry/retry-exhausted-to-dead-letter.json"),
    "events": ("level-0-core/events/*",),
    "limits": ("level-4-advanced/rate-limit/*",),
    "statistics": ("ext-admin-api/admin-stats.json",),
    "unique": ("level-4-advanced/unique/*", "level-0-core/envelope/valid-full-job.json"),
    "workflows": ("level-3-workflows/*",),
}
"""Patterns of cases that need a feature, beside those of its extensions."""
_OF_BARE: Final = ("level-0-", "level-1-")
sys.path[:0] = [str(_HERE.parent), str(_ROOT)]

from conformance.verdicts import differences  # noqa: E402
from ojs_features.all import FEATURES  # noqa: E402
from ojs_features.plug import Feature  # noqa: E402
from script.pages.conformance import conformance  # noqa: E402
from support.certificates import Authority  # noqa: E402  # tests aren't installed
from support.cli import Cli  # noqa: E402
from support.cluster import NatsCluster  # noqa: E402
from support.nats import NatsServer  # noqa: E402
from support.system import Processes, System, send  # noqa: E402
from support.waiting import until  # noqa: E402
from support.without import NAMES, without  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suites", type=Path, default=_ROOT.parent / "shared" / "conformance" / "suites")
    parser.add_argument("--runner", type=Path, help="the runner; by default run.py beside the suites")
    parser.add_argument("--url", action="append", help="a gateway in test mode that runs already; several take turns")
    parser.add_argument("--arrangement", choices=["dev", "processes", "cluster", "bare"], default="dev")
    parser.add_argument(
        "--without", default="", metavar="NAMES", help="features to leave out, with the cases that need them; each: by turns"
    )
    parser.add_argument("--keys", action="store_true", help="have the server ask for keys, and the runner show one")
    parser.add_argument("--tls", action="store_true", help="have the server speak TLS")
    parser.add_argument("--quick", action="store_true", help="without the cases that wait for minutes to pass")
    parser.add_argument("--list", action="store_true", help="only list the cases")
    parser.add_argument("--verdicts", action="store_true", help="run all cases, and compare with docs/conformance.md")
    parser.add_argument("patterns", nargs="*", help="files of the suites instead of those in claimed.txt")
    options = parser.parse_args()

    if options.url and (options.keys or options.tls):
        parser.error("--keys and --tls are about a server that is started here: leave out --url")
    if options.arrangement == "bare" and (options.keys or options.tls or options.verdicts):
        parser.error("bare is without keys and TLS, and --verdicts is about more than its two levels")
    runner = options.runner or options.suites.parent / "run.py"
    if not runner.is_file():
        print(f"there is no conformance runner at {runner}", file=sys.stderr)
        return 2
    patterns = options.patterns or (["*"] if options.verdicts else read_patterns(_HERE / "claimed.txt"))
    if options.arrangement == "bare" and not options.patterns:
        patterns = [pattern for pattern in patterns if pattern.lstrip("!").startswith(_OF_BARE)]
    if options.without and (options.url or options.arrangement not in {"dev", "bare"}):
        parser.error("--without is about a server that is started here, by dev or bare")
    if options.without == "each":
        return _each(sys.argv[1:])
    wanted = options.without.split(",") if options.without else []
    if unknown := set(wanted) - set(NAMES):
        parser.error(
            f"there is no feature {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}, and each for all by turns"
        )
    gone = [feature for feature in FEATURES if feature.name in wanted]
    patterns = [*patterns, *(f"!{cases}" for feature in gone for cases in _cases(feature))]
    names, idle = choose(options.suites, [*patterns, *_SLOW] if options.quick else patterns)
    for pattern in idle:
        print(f"the pattern {pattern} matches no case", file=sys.stderr)
    if idle or not names:
        print(f"{len(names)} cases chosen; none ran", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(names))
        return 0
    # Both end the servers below; a job in the background of a shell would otherwise ignore the first.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="ojs-conformance-") as name:
        folder = Path(name)
        arguments = _with_tls(folder) if options.tls else ()
        with server(options.url, options.arrangement, folder, arguments, gone) as (
            urls,
            nats_url,
        ):
            report = folder / "report.json"
            program = [str(runner)]
            if options.keys:
                os.environ["OJS_AUTH_TOKEN"] = _first_key(folder, nats_url, urls)
                program.insert(0, str(_HERE / "showing_key.py"))
            command = [sys.executable, *program, "--suites", str(options.suites), "--json", str(report)]
            for url in urls:
                command += ["--url", url]
            command += ["--reset-url", f"{urls[0]}/ojs/v1/admin/reset"]
            for case in names:
                command += ["--test", case]
            status = subprocess.run(command, check=False).returncode
            if not options.verdicts or not report.is_file():
                return status
            wrong = differences(json.loads(report.read_text(encoding="utf-8"))["cases"], conformance())
            print("\n".join(wrong) or "docs/conformance.md is right about all of them")
            return 1 if wrong else 0


def _each(words: Sequence[str]) -> int:
    """Run without each feature, one after the other; return the worst exit status."""
    worst = 0
    for name in NAMES:
        print(f"-- without {name}", flush=True)
        command = [sys.executable, __file__, *words, "--without", name]  # the last one counts
        worst = max(worst, subprocess.run(command, check=False).returncode)
    return worst


def _cases(feature: Feature) -> Iterator[str]:
    """Yield patterns of the cases that need a feature."""
    yield from (f"ext-{extension.name}/*" for extension in feature.extensions)
    yield from _NEED.get(feature.name, ())


def _require_gone(url: str, gone: Sequence[Feature]) -> None:
    """Raise RuntimeError if a server has an operation of a feature that it was to be started without."""
    described = send("GET", f"{url}/ojs/v1/openapi.json").body["paths"].values()
    found = {operation["operationId"] for path in described for operation in path.values() if "operationId" in operation}
    names = {route.paths[0].rpartition(" ")[2] for feature in gone for part in feature.parts for route in part.routes}
    if there := names & found:
        raise RuntimeError(f"the server has {', '.join(sorted(there))}")


def read_patterns(file: Path) -> list[str]:
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def choose(suites: Path, patterns: list[str]) -> tuple[list[str], list[str]]:
    """The names of the cases that the patterns leave, and the including patterns that match no file."""
    files = [str(path.relative_to(suites)) for path in sorted(suites.rglob("*.json"))]
    chosen: dict[str, None] = {}
    idle = []
    for pattern in patterns:
        matching = [file for file in files if fnmatch(file, pattern.removeprefix("!"))]
        if pattern.startswith("!"):
            for file in matching:
                chosen.pop(file, None)
        elif matching:
            chosen.update(dict.fromkeys(matching))
        else:
            idle.append(pattern)
    return [json.loads((suites / file).read_text(encoding="utf-8"))["name"] for file in chosen], idle


@contextmanager
def server(
    urls: list[str] | None, arrangement: str, folder: Path, arguments: Sequence[str], gone: Sequence[Feature]
) -> Iterator[tuple[list[str], str]]:
    """The base URLs to send requests to, by turns, and that of NATS. `arguments` are for its gateways.

    `gone` are features that it runs without.
    """
    if urls:
        yield [url.rstrip("/") for url in urls], ""
        return
    match arrangement:
        case "processes":
            with NatsServer(folder / "nats") as nats, Processes.two_of_each(folder, nats.url, gateway=arguments) as gateways:
                yield gateways, nats.url
        case "cluster":
            with (
                NatsCluster(folder / "nats") as cluster,
                Processes.two_of_each(folder, cluster.url, "--replicas", "3", gateway=arguments) as gateways,
            ):
                yield gateways, cluster.url
        case "bare":
            rest = [name for name in NAMES if name not in _BASIC or name in {feature.name for feature in gone}]
            with NatsServer(folder / "nats") as nats, _bare(folder, nats.url, rest) as gateway:
                yield [gateway], nats.url
        case _:
            # Processes that dev starts have all features, so there are none.
            program = (
                (*without(*(one.name for one in gone)), "dev", "--together") if gone else (str(_ROOT / "script" / "server"),)
            )
            with System.started(folder, *arguments, program=program) as system:
                _require_gone(system.url, gone)
                yield [system.url], system.nats_url


@contextmanager
def _bare(folder: Path, nats_url: str, gone: Sequence[str]) -> Iterator[str]:
    """One of each service that levels 0 and 1 need, without these features; yields the gateway's address."""
    services = Processes(folder, nats_url, program=without(*gone))
    own = {"projector": ("--projector-data", str(folder / "index"))}
    try:
        started = {name: services.start(name, *options, *own.get(name, ())) for name, options in _BARE.items()}
        ready = {name: command.ready() for name, command in started.items()}
        yield str(ready["gateway"]["url"])
    finally:
        services.stop()


def _with_tls(folder: Path) -> tuple[str, ...]:
    """A gateway's arguments for a certificate of an authority that this process, and those it starts, trust."""
    authority = Authority(folder / "certificates")
    pair = authority.server()
    os.environ["SSL_CERT_FILE"] = str(authority.file)
    return ("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))


def _first_key(folder: Path, nats_url: str, urls: Sequence[str]) -> str:
    """A key that may do everything, made as an operator does, once all gateways ask for it."""
    made = Cli(folder).asked("keys", "create", "--name", "conformance", "--role", "admin", "--nats", nats_url)

    def shut() -> bool:
        return all(send("GET", f"{url}/ojs/v1/queues").status == 401 for url in urls)

    until(shut)
    return made.strip()


if __name__ == "__main__":
    sys.exit(main())
