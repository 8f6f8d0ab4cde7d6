"""A client command from its arguments to its exit code."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msgspec

from ojs_command.client.arguments import token_in
from ojs_command.client.context_file import Target, target_of
from ojs_command.client.output import Output, say
from ojs_command.client.parser import files_of
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_command.client.session import CommandTimings, Session
from ojs_nats import Client, OjsError
from ojs_nats._command.entry import INTERRUPTED
from ojs_nats._connect import DEFAULT_URL, authorized
from ojs_nats.errors import (
    DuplicateError,
    PermissionDeniedError,
    QueueClosedError,
    QueueFullError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)
from ojs_runtime.logs import configure

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""A disk that is full, or fails."""
_HINTS: Final[dict[type[RefusedError], str]] = {
    QueueFullError: ": wait, or raise its bound with 'ojs-nats queues config QUEUE --max-size N'",
    QueueClosedError: ": 'ojs-nats queues get QUEUE' shows why, 'ojs-nats queues resume QUEUE' ends a pause",
    DuplicateError: ": 'ojs-nats get ID' shows it",
    TooLargeError: ": keep what is large elsewhere, and pass where it is",
}
_HEADERS_WANTED: Final = frozenset({401, 403, 407})


def run_command(given: argparse.Namespace) -> int:
    """The exit code (docs/cli.md)."""
    configure(service="ojs-nats", instance="", log_format="console", level="error", stream=sys.stderr)
    if sys.stdout is None:  # it was closed before the start, so no output is wanted
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        return _run(given)
    except BrokenPipeError:  # whoever reads has seen enough; what is left is flushed at the end of Python
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python tries once more at its end
        say(f"standard output can't be written: {os.strerror(error.errno).lower()}.")
        return FAILED
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED


def _run(given: argparse.Namespace) -> int:
    out = Output(as_json=getattr(given, "json", False))
    try:
        for text in _texts(list(vars(given).values())):
            _check_unicode(text)
        code = asyncio.run(_asked(given, out, _target(given)))
        sys.stdout.flush()
    except UsageProblem as problem:
        say(str(problem))
        return USAGE
    return code


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _check_unicode(text: str) -> None:
    """Raise UsageProblem for bytes that are no text: no request could hold them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageProblem(f"{text[:80]!a} is no text in UTF-8.") from None


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    """Ends what reads standard input as well, which asyncio's own handler would wait for."""
    raise KeyboardInterrupt


def _target(given: argparse.Namespace) -> Target:
    if is_offline(given):
        return Target(DEFAULT_URL, {}, "")
    target = target_of(getattr(given, "server", None), getattr(given, "context", None), files_of(given), os.environ)
    file = getattr(given, "token_file", None)
    if file is not None:
        return target.showing(token_in(file))
    try:
        authorized(target.headers, None)
    except ValueError as error:
        raise UsageProblem(f"{error}.") from None
    return target


def is_offline(given: argparse.Namespace) -> bool:
    """Whether a command asks no server."""
    return bool(getattr(given, "offline", False) or getattr(given, "on_nats", None))


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Have Ctrl-C cancel this task as well: Python drops what a signal's handler raises in a `__del__` or the like."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def interrupted(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(task.cancel)
        _interrupted(number, frame)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _asked(given: argparse.Namespace, out: Output, target: Target) -> int:
    with _ended_by_ctrl_c():
        return await _answered(given, out, target)


async def _answered(given: argparse.Namespace, out: Output, target: Target) -> int:
    timings = CommandTimings()
    async with Client(target.url, retry_for=timings.retry_s, headers=target.headers, tls=target.tls) as client:
        try:
            if not (is_offline(given) or getattr(given, "finds_out", False)):
                await reach(target)
            await given.run(Session(client, out, target, timings), given)
        except RefusedError as refusal:
            say(_refused(refusal, target))
            return FAILED
        except UnavailableError as error:
            if isinstance(error.__cause__, msgspec.MsgspecError):
                say(_no_server(error.__cause__, target))
                return FAILED
            say(unreachable(error, target))
            return UNREACHABLE
        except msgspec.MsgspecError as error:
            say(_no_server(error, target))
            return FAILED
        except (CommandFailed, OjsError) as problem:
            if str(problem):
                say(str(problem))
            return FAILED
    return OK


async def reach(target: Target) -> None:
    """Ask once whether a server is there: a wrong address is told of at once. Raises UnavailableError."""
    async with Client(target.url, retry_for=0, headers=target.headers, tls=target.tls) as client:
        try:
            await client.system.health()
        except RefusedError:  # somebody is there; what is asked next says what is wrong
            pass


def unreachable(error: UnavailableError, target: Target) -> str:
    """What to do when nobody answers."""
    if isinstance(error.__cause__, RefusedError):
        return f"The server at {target.shown} can't do that now ({error.__cause__}): 'ojs-nats doctor' says why."
    if isinstance(error.__cause__, ssl.CertificateError):
        return distrusted(error.__cause__, target)
    shows = "" if target.tls is None or target.tls.cert_file else "; if it asks for your certificate, name that by --cert-file"
    return (
        f"No OJS server answers at {target.shown} (from {target.source}): start one with 'ojs-nats dev', or name another "
        f"with --server or --context{shows}."
    )


def distrusted(error: ssl.CertificateError, target: Target) -> str:
    """What to do about a server whose certificate isn't accepted."""
    cause = error.__cause__ if isinstance(error.__cause__, ssl.SSLCertVerificationError) else error
    reason = getattr(cause, "verify_message", str(cause))
    return (
        f"The certificate of {target.shown} isn't trusted ({reason}): name the file of its CA with --ca-file or "
        "OJS_CA_FILE, or correct the address."
    )


def _no_server(error: BaseException, target: Target) -> str:
    return f"What {target.shown} answers isn't what an OJS server says ({error}): is the address right?"


def _refused(refusal: RefusedError, target: Target) -> str:
    if refusal.status in _HEADERS_WANTED or isinstance(refusal, PermissionDeniedError):
        return (
            f"The server at {target.shown} doesn't allow that ({refusal}): show another key with --token-file, OJS_AUTH_TOKEN, "
            "or 'ojs-nats context set NAME --server URL --token-file FILE'."
        )
    hint = next((hint for kind, hint in _HINTS.items() if isinstance(refusal, kind)), "")
    return f"{refusal}{hint}"
