"""Schemas that jobs' arguments are held to (docs/schemas.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal

from ojs_nats._operations import Operation, Request
from ojs_nats.models.schemas import Schema, SchemaHead, SchemaVersion
from ojs_nats.operations.subject import Subject, body

_LIST: Final = Operation("listSchemas", "GET", "/schemas")
_DOCUMENTS: Final = Operation("adminListSchemas", "GET", "/admin/schemas")
_REGISTER: Final = Operation("registerSchema", "POST", "/schemas")
_GET: Final = Operation("getSchema", "GET", "/schemas/{schema}")
_DELETE: Final = Operation("deleteSchema", "DELETE", "/schemas/{schema}")
_VERSIONS: Final = Operation("listSchemaVersions", "GET", "/schemas/{schema}/versions")
_GET_VERSION: Final = Operation("getSchemaVersion", "GET", "/schemas/{schema}/{version}")
_PUT_VERSION: Final = Operation("adminPutSchema", "PUT", "/admin/schemas/{schema}/{version}")
_DELETE_VERSION: Final = Operation("deleteSchemaVersion", "DELETE", "/schemas/{schema}/{version}")

Mode = Literal["off", "warn", "strict"]
Compatibility = Literal["semver", "none", "backward", "forward", "full"]
Version = int | str


class Schemas(Subject):
    """`client.schemas`. What is about one schema raises NotFoundError."""

    def list(self, *, limit: int | None = None) -> AsyncIterator[SchemaHead]:
        """By type, the newest version of each first; without the documents."""
        return self._each(SchemaHead, "schemas", _LIST, limit, {})

    def documents(self, *, limit: int | None = None) -> AsyncIterator[Schema]:
        """The same with the documents."""
        return self._each(Schema, "schemas", _DOCUMENTS, limit, {})

    async def register(
        self,
        job_type: str,
        version: Version,
        schema: Mapping[str, Any],
        *,
        uri: str | None = None,
        mode: Mode | None = None,
        compatibility: Compatibility | None = None,
    ) -> Schema:
        """A new version; `schema` is a JSON Schema of the list of arguments. Raises ConflictError if version or URI are
        taken.
        """
        asked = {"type": job_type, "version": version, "schema": schema, **_settings(uri, mode, compatibility)}
        return await self._asked(Schema, Request(_REGISTER, body=asked, repeatable=False), "schema")

    async def put(
        self,
        job_type: str,
        version: Version,
        schema: Mapping[str, Any],
        *,
        uri: str | None = None,
        mode: Mode | None = None,
        compatibility: Compatibility | None = None,
    ) -> Schema:
        """A new version, or other settings for one that is there; its document can't be changed."""
        asked = {"schema": schema, **_settings(uri, mode, compatibility)}
        return await self._asked(Schema, Request(_PUT_VERSION, _place(job_type, version), asked))

    async def get(self, schema: str) -> Schema:
        """By its URI, or the newest of a job type."""
        return await self._asked(Schema, Request(_GET, {"schema": schema}), "schema")

    async def version(self, job_type: str, version: Version) -> Schema:
        return await self._asked(Schema, Request(_GET_VERSION, _place(job_type, version)), "schema")

    async def versions(self, job_type: str) -> Sequence[SchemaVersion]:
        """The newest first."""
        return await self._asked(list[SchemaVersion], Request(_VERSIONS, {"schema": job_type}), "versions")

    async def delete(self, uri: str) -> None:
        """Jobs that are there already stay."""
        await self._transport.send(Request(_DELETE, {"schema": uri}))

    async def delete_version(self, job_type: str, version: Version) -> None:
        await self._transport.send(Request(_DELETE_VERSION, _place(job_type, version)))


def _place(job_type: str, version: Version) -> dict[str, str]:
    return {"schema": job_type, "version": str(version)}


def _settings(uri: str | None, mode: Mode | None, compatibility: Compatibility | None) -> dict[str, object]:
    return body(uri=uri, validation=None if mode is None else {"mode": mode}, compatibility=compatibility)
