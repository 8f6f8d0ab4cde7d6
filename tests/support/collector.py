"""An OpenTelemetry collector: it takes traces over HTTP and keeps them."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Received(NamedTuple):
    """One span; ids in hexadecimal, `parent` empty if there is none, links as (trace, span)."""

    service: str
    name: str
    trace: str
    span: str
    parent: str
    links: list[tuple[str, str]]
    attributes: dict[str, Any]


class Collector:
    """Listens on `url` until the block ends. One that `hangs` reads requests and never answers."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.spans: list[Received] = []
        self.asked = threading.Event()
        self._released = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.asked.set()
                if hangs:
                    collector._released.wait(60)
                    return
                assert self.path == "/v1/traces"
                collector._take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @classmethod
    @contextmanager
    def started(cls, *, hangs: bool = False) -> Iterator[Collector]:
        collector = cls(hangs=hangs)
        thread = threading.Thread(target=collector._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield collector
        finally:
            collector._released.set()
            collector._server.shutdown()
            collector._server.server_close()
            thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def _take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _values(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [
                    Received(
                        service=service,
                        name=span.name,
                        trace=span.trace_id.hex(),
                        span=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                        attributes=_values(span.attributes),
                    )
                    for span in scope.spans
                ]


def _values(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}
