"""Operations on schemas, which jobs' arguments have to fit (docs/schemas.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal

from ojs_nats._operations import Operation, Request
from ojs_nats.models.schemas import Schema, SchemaHead, SchemaVersion
from ojs_nats.operations._subject import Subject, body

__all__ = ["Compatibility", "Mode", "Schemas", "Version"]

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
    """The operations on schemas, as `client.schemas`. Those on one schema raise NotFoundError if it doesn't exist."""

    def list(self, *, limit: int | None = None) -> AsyncIterator[SchemaHead]:
        """List schemas without their documents, by job type, the newest version of each first.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(SchemaHead, "schemas", _LIST, limit, {})

    def documents(self, *, limit: int | None = None) -> AsyncIterator[Schema]:
        """List schemas with their documents, by job type, the newest version of each first.

        Args:
            limit: How many at most. None means all.
        """
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
        """Register a new version of a job type's schema.

        Args:
            job_type: The job type.
            version: The version.
            schema: A JSON Schema of the list of arguments.
            uri: The schema's URI. None lets the server make one.
            mode: What happens to arguments that don't fit: `"off"`, `"warn"` or `"strict"`. None means what the queue
                says.
            compatibility: How the version has to be compatible with the one before. None means the server's default.

        Raises:
            ConflictError: The version or the URI is taken.
            InvalidRequestError: The schema isn't valid, or isn't compatible.
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
        """Register a version of a job type's schema, or change the settings of one. Its document can't be changed.

        Args:
            job_type: The job type.
            version: The version.
            schema: A JSON Schema of the list of arguments.
            uri: The schema's URI. None lets the server make one.
            mode: What happens to arguments that don't fit: `"off"`, `"warn"` or `"strict"`. None means what the queue
                says.
            compatibility: How the version has to be compatible with the one before. None means the server's default.
        """
        asked = {"schema": schema, **_settings(uri, mode, compatibility)}
        return await self._asked(Schema, Request(_PUT_VERSION, _place(job_type, version), asked))

    async def get(self, schema: str) -> Schema:
        """Return a schema.

        Args:
            schema: Its URI, or a job type for the newest version.

        Raises:
            NotFoundError: There is no such schema.
        """
        return await self._asked(Schema, Request(_GET, {"schema": schema}), "schema")

    async def version(self, job_type: str, version: Version) -> Schema:
        """Return one version of a job type's schema.

        Args:
            job_type: The job type.
            version: The version.

        Raises:
            NotFoundError: There is no such version.
        """
        return await self._asked(Schema, Request(_GET_VERSION, _place(job_type, version)), "schema")

    async def versions(self, job_type: str) -> Sequence[SchemaVersion]:
        """Return the versions of a job type's schema, the newest first.

        Raises:
            NotFoundError: The job type has no schema.
        """
        return await self._asked(list[SchemaVersion], Request(_VERSIONS, {"schema": job_type}), "versions")

    async def delete(self, uri: str) -> None:
        """Delete a schema by its URI. Jobs that were pushed before stay.

        Raises:
            NotFoundError: There is no such schema.
        """
        await self._transport.send(Request(_DELETE, {"schema": uri}))

    async def delete_version(self, job_type: str, version: Version) -> None:
        """Delete one version of a job type's schema.

        Args:
            job_type: The job type.
            version: The version.

        Raises:
            NotFoundError: There is no such version.
        """
        await self._transport.send(Request(_DELETE_VERSION, _place(job_type, version)))


def _place(job_type: str, version: Version) -> dict[str, str]:
    return {"schema": job_type, "version": str(version)}


def _settings(uri: str | None, mode: Mode | None, compatibility: Compatibility | None) -> dict[str, object]:
    return body(uri=uri, validation=None if mode is None else {"mode": mode}, compatibility=compatibility)
