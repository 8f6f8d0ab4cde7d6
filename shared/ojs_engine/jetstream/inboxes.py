"""The guard of answers over NATS (docs/adr/054).

The asker names the reply subject, and nats-server doesn't hold that name to what the asker may publish. The answer is
published with the rights of whoever answers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import structlog

from ojs_engine.jetstream.connection import Reply
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog

log = structlog.get_logger(__name__)

_TOKEN: Final = rb"[!-)+-\-/-=?-~]+"
_SUBJECT: Final = re.compile(rb"%b(?:\.%b)*" % (_TOKEN, _TOKEN))
"""Printable ASCII without blanks, wildcards and empty tokens."""
PREFIXES: Final = ("_INBOX", "_R_.")
"""How inboxes of clients begin. The second is NATS's own, for requests of other accounts, and nobody else may use it."""
_MOST_SHOWN: Final = 100


class Inboxes:
    """The subjects that answers may go to: those that begin with one of `prefixes`."""

    def __init__(self, prefixes: Sequence[str] = PREFIXES) -> None:
        self._prefixes = tuple(prefix.encode() for prefix in prefixes)
        self._refusals = SeldomLog(30.0)

    def admit(self, request: Reply) -> bool:
        """Return whether a request may be carried out and answered. A refusal is counted, and logged now and then."""
        reply = request.reply
        if reply.startswith(self._prefixes) and _SUBJECT.fullmatch(reply):
            return True
        if not reply:
            log.debug("a request without a reply subject is not carried out", subject=_shown(request.subject))
            return False
        metrics.REPLIES_REFUSED.inc()
        if self._refusals.due():
            asked, wanted = _shown(request.subject), _shown(reply)
            log.warning("a request whose reply subject is no inbox is not carried out", subject=asked, reply=wanted)
        return False


def _shown(subject: bytes) -> str:
    """Return the beginning of a subject, fit for a log: what isn't printable ASCII is escaped."""
    return ascii(subject[:_MOST_SHOWN].decode("latin-1"))[1:-1]
