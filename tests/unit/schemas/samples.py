from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import Job, State
from ojs_features.schemas.record import SchemaRecord


def record(document: Any, version: str = "1.0.0", **members: Any) -> SchemaRecord:
    uri = members.pop("uri", f"urn:ojs:schema:test.job:v{version}")
    body = Raw(msgspec.json.encode(document))
    return SchemaRecord(**({"uri": uri, "type": "test.job", "version": version, "document": body} | members))


def draft(args: Any = (), **members: Any) -> Job:
    body = Raw(msgspec.json.encode(args))
    return Job(**({"id": "id", "type": "test.job", "args": body, "state": State.AVAILABLE} | members))
