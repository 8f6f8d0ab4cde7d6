"""A target of webhooks: an HTTP server of a test, which keeps what it gets and answers as it is told."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Got(NamedTuple):
    """A request that came to the target."""

    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    def signed_by(self, secret: str) -> bool:
        """As a receiver checks it: one signature is right, and the timestamp is of now."""
        timestamp = self.headers["X-OJS-Timestamp"]
        expected = hmac.new(secret.encode(), f"{timestamp}.".encode() + self.body, hashlib.sha256).hexdigest()
        sent = self.headers["X-OJS-Signature"].split(",")
        return f"sha256={expected}" in sent and abs(int(timestamp) - time.time()) < 300


class WebhookTarget:
    """Answers 200 and `body` unless `answer` says otherwise: a status and headers, for each request."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answer: Callable[[Got], tuple[int, dict[str, str]]] = lambda _got: (200, {})
        self.body = b"OK"
        target = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                got = Got(dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
                target.got.append(got)
                status, headers = target.answer(got)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(target.body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # whoever sent this may not read all of it
                    self.wfile.write(target.body)

            def log_message(self, format: str, *args: Any) -> None:  # its parent's
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[WebhookTarget]:
        target = cls()
        thread = threading.Thread(target=target._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield target
        finally:
            target._server.shutdown()
            target._server.server_close()
            thread.join()

    @property
    def subjects(self) -> list[str]:
        """What the events that came were about."""
        return [got.event["subject"] for got in list(self.got)]
