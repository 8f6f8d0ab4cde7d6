"""`ojs-nats worker`: runs the jobs that an application's modules define."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

from ojs_api import words
from ojs_nats._command.parser import PlainParser, formatter

PURPOSE: Final = "run the jobs that your Python modules define"
CANNOT_START: Final = 1
"""The exit code of a worker that a sentence keeps from starting."""
EPILOG: Final = """\
The server is that of the module's App: its url, else OJS_URL, else http://127.0.0.1:8080.

examples:
  ojs-nats worker app.jobs
  ojs-nats worker app.emails app.images --concurrency 50 --queues urgent,default
  OJS_URL=https://jobs.internal ojs-nats worker app.jobs --grace-period 10m

  ojs-nats worker app.jobs --reload --grace-period 2s

signals:
  SIGTERM   fetch no more, let jobs end within the grace period, hand back the rest, exit with 0
  SIGINT    the same without a grace period (Ctrl+C)
  SIGTSTP   fetch no more; SIGCONT goes on
"""
_USUAL_CONCURRENCY: Final = 10


def main(words: Sequence[str]) -> int:
    """Run a worker as these words behind `ojs-nats worker` say; returns the exit code."""
    parser = PlainParser(
        prog="ojs-nats worker",
        description=f"{PURPOSE[0].upper()}{PURPOSE[1:]}.",
        epilog=EPILOG,
        formatter_class=formatter,
        allow_abbrev=False,
    )
    define(parser)
    given, unknown = parser.parse_known_args(words)
    if unknown:
        parser.refuse(unknown)
    return run(given)


class WrongValue(Exception):
    """A value of an option, or of the variable in its place, that can't be used. The message names the remedy."""


def define(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("modules", nargs="+", metavar="MODULE", help="as you would import it here: app.jobs")
    parser.add_argument(
        "--queues", metavar="NAMES", help="which, first to last, by commas [OJS_QUEUES, else those of the jobs]"
    )
    parser.add_argument("--types", metavar="NAMES", help="which types of jobs, by commas [OJS_JOB_TYPES, else all]")
    parser.add_argument("--concurrency", type=int, metavar="N", help="jobs at a time [OJS_CONCURRENCY, else 10]")
    parser.add_argument("--ahead", type=int, help=argparse.SUPPRESS)  # of 0.2; it goes with 0.4
    parser.add_argument(
        "--grace-period", "--grace", default="25s", metavar="TIME", help="how long jobs may go on after SIGTERM [25s]"
    )
    parser.add_argument("--processes", type=int, metavar="N", help="processes for jobs that run in them [the CPUs]")
    parser.add_argument("--health-port", type=int, metavar="PORT", help="serve /healthz, /readyz and /metrics there [nowhere]")
    parser.add_argument("--health-host", default="127.0.0.1", metavar="HOST", help="[127.0.0.1]")
    parser.add_argument("--token-file", metavar="FILE", help="a file with the key to show [OJS_AUTH_TOKEN, OJS_API_KEY]")
    parser.add_argument("--reload", action="store_true", help="begin anew when a .py file below this folder changes")
    parser.add_argument("--verbose", action="store_true", help="log each job, and tracebacks [on with --reload]")
    parser.add_argument(
        "--log-payloads",
        choices=("on", "off"),
        help="whether the log has the messages of handlers' errors [OJS_LOG_PAYLOADS, else on]",
    )
    parser.add_argument("--log-level", choices=get_args(words.LogLevel), default="info", help="[info]")
    parser.add_argument("--log-format", choices=get_args(words.LogFormat), default="auto", help="[auto, by the terminal]")


def run(given: argparse.Namespace) -> int:
    """Run the worker until a signal stops it; returns its exit code."""
    from ojs_nats._command import logs  # noqa: PLC0415
    from ojs_nats.errors import MissingDependencyError  # noqa: PLC0415  # the client, which help needs not
    from ojs_nats.worker import _process, _reload  # noqa: PLC0415

    logs.configure(instance=f"{platform.node()}:{os.getpid()}", log_format=given.log_format, level=given.log_level)
    if given.ahead is not None:
        print("ojs-nats worker: --ahead does nothing now (CHANGELOG, 0.2 to 0.3)", file=sys.stderr)
    try:
        if given.token_file is not None:
            # Apps read it when they are made, here and in children.
            os.environ["OJS_AUTH_TOKEN"] = token_in(given.token_file)
        if given.reload:
            return _reload.run(_without_reload(), Path.cwd())
        options = _process.WorkerOptions(
            queues=_names(given.queues, "OJS_QUEUES"),
            concurrency=_concurrency(given.concurrency),
            grace_period=given.grace_period,
            processes=given.processes,
            health=None if given.health_port is None else (given.health_host, given.health_port),
            log_payloads=_log_payloads(given.log_payloads),
            verbose=given.verbose,
        )
        _process.run(given.modules, _names(given.types, "OJS_JOB_TYPES"), **options)
    except (_process.CannotStart, MissingDependencyError, WrongValue) as problem:
        print(f"ojs-nats worker: {problem}", file=sys.stderr)
        return CANNOT_START
    return 0


def token_in(path: str) -> str:
    """Return the key in a file. Raises WrongValue."""
    try:
        found = Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise WrongValue(f"--token-file {path} can't be read: {reason}.") from None
    if not (found.isascii() and found.isprintable()) or not found or " " in found:
        raise WrongValue(f"--token-file {path} holds no key: it has to be one word in one line.")
    return found


def _names(given: str | None, variable: str) -> list[str]:
    """Return the names of an option, or of the variable that counts where it isn't given."""
    said = os.environ.get(variable, "") if given is None else given
    return [name for name in map(str.strip, said.split(",")) if name]


def _concurrency(given: int | None) -> int:
    """Return how many jobs run at a time. Raises WrongValue for a variable that is no number."""
    said = os.environ.get("OJS_CONCURRENCY") or str(_USUAL_CONCURRENCY)
    if given is None and not said.isdecimal():
        raise WrongValue(f"OJS_CONCURRENCY is a number of jobs, not {said!r}.")
    return int(said) if given is None else given


def _without_reload() -> list[str]:
    """Return the command line of the worker itself, which is verbose for who develops it."""
    arguments = [argument for argument in sys.argv[1:] if argument not in {"--reload", "--verbose"}]
    return [sys.executable, "-m", "ojs_nats", *arguments, "--verbose"]


def _log_payloads(given: str | None) -> bool:
    """Return whether messages of errors may be logged. Raises WrongValue for another word in OJS_LOG_PAYLOADS."""
    said = given or os.environ.get("OJS_LOG_PAYLOADS") or "on"
    if said not in {"on", "off"}:
        raise WrongValue(f"OJS_LOG_PAYLOADS is on or off, not {said!r}.")
    return said == "on"
