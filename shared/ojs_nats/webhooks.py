"""Verification of webhook deliveries: whether one comes from the server (ojs-webhooks §8)."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Final

__all__ = ["verify_webhook"]

_LONGEST: Final = 20
"""Characters of a timestamp; more are no number of seconds."""


def verify_webhook(
    secret: str,
    body: bytes,
    *,
    signature: str | bytes | None,
    timestamp: str | bytes | None,
    tolerance_s: float = 300.0,
    now: float | None = None,
) -> bool:
    """Check the signature of a webhook's delivery. It never raises an exception, also for made-up requests.

    Args:
        secret: The subscription's secret. During a rotation either secret fits.
        body: The body as it came, before anything parses it.
        signature: The header `X-OJS-Signature`; None if there is none.
        timestamp: The header `X-OJS-Timestamp`; None if there is none.
        tolerance_s: How far the timestamp may be off, in seconds.
        now: The time to compare with, in Unix seconds; None for this machine's clock.

    Returns:
        Whether the delivery was signed with the secret, within the tolerance. Answer 401 where it wasn't.

    Example:
        ```python
        @app.post("/hooks/ojs")
        async def receive(request: Request) -> Response:
            body = await request.body()
            headers = request.headers
            sent = {"signature": headers.get("X-OJS-Signature"), "timestamp": headers.get("X-OJS-Timestamp")}
            if not verify_webhook(SECRET, body, **sent):
                return Response(status_code=401)
        ```

    """
    moment = _bytes(timestamp).strip()
    if not (moment.isdigit() and len(moment) <= _LONGEST):
        return False
    signed = b"sha256=" + hmac.new(secret.encode(), moment + b"." + body, hashlib.sha256).hexdigest().encode()
    fits = any(hmac.compare_digest(signed, one.strip()) for one in _bytes(signature).split(b","))
    return fits and abs((time.time() if now is None else now) - int(moment)) <= tolerance_s


def _bytes(header: str | bytes | None) -> bytes:
    if header is None:
        return b""
    return header.encode(errors="replace") if isinstance(header, str) else bytes(header)
