"""Operations on schemas, which jobs' arguments have to fit (docs/schemas.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ojs_api.schemas import (
    DELETE,
    DELETE_VERSION,
    GET,
    GET_VERSION,
    LIST,
    LIST_WHOLE,
    PUT_VERSION,
    REGISTER,
    VERSIONS,
    Compatibility,
    Mode,
    PutSchema,
    RegisterSchema,
    Schema,
    SchemaHead,
    SchemaVersion,
    Validation,
)
from ojs_nats._operations import Request
from ojs_nats.operations._subject import Subject, sent

__all__ = ["Compatibility", "Mode", "Schemas", "Version"]

Version = int | str


class Schemas(Subject):
    """The operations on schemas, as `client.schemas`. Those on one schema raise NotFoundError if it doesn't exist."""

    def list(self, *, limit: int | None = None) -> AsyncIterator[SchemaHead]:
        """List schemas without their documents, by job type, the newest version of each first.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(SchemaHead, "schemas", LIST, limit, {})

    def documents(self, *, limit: int | None = None) -> AsyncIterator[Schema]:
        """List schemas with their documents, by job type, the newest version of each first.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(Schema, "schemas", LIST_WHOLE, limit, {})

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
        asked = RegisterSchema(
            type=job_type,
            version=version,
            schema=schema,
            uri=uri,
            validation=_validation(mode),
            compatibility=compatibility,
        )
        return await self._asked(Schema, Request(REGISTER, body=sent(asked), repeatable=False), "schema")

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
        asked = PutSchema(schema=schema, uri=uri, validation=_validation(mode), compatibility=compatibility)
        return await self._asked(Schema, Request(PUT_VERSION, _place(job_type, version), sent(asked)))

    async def get(self, schema: str) -> Schema:
        """Return a schema.

        Args:
            schema: Its URI, or a job type for the newest version.

        Raises:
            NotFoundError: There is no such schema.
        """
        return await self._asked(Schema, Request(GET, {"schema": schema}), "schema")

    async def version(self, job_type: str, version: Version) -> Schema:
        """Return one version of a job type's schema.

        Args:
            job_type: The job type.
            version: The version.

        Raises:
            NotFoundError: There is no such version.
        """
        return await self._asked(Schema, Request(GET_VERSION, _place(job_type, version)), "schema")

    async def versions(self, job_type: str) -> Sequence[SchemaVersion]:
        """Return the versions of a job type's schema, the newest first.

        Raises:
            NotFoundError: The job type has no schema.
        """
        return await self._asked(list[SchemaVersion], Request(VERSIONS, {"schema": job_type}), "versions")

    async def delete(self, uri: str) -> None:
        """Delete a schema by its URI. Jobs that were pushed before stay.

        Raises:
            NotFoundError: There is no such schema.
        """
        await self._transport.send(Request(DELETE, {"schema": uri}))

    async def delete_version(self, job_type: str, version: Version) -> None:
        """Delete one version of a job type's schema.

        Args:
            job_type: The job type.
            version: The version.

        Raises:
            NotFoundError: There is no such version.
        """
        await self._transport.send(Request(DELETE_VERSION, _place(job_type, version)))


def _place(job_type: str, version: Version) -> dict[str, str]:
    return {"schema": job_type, "version": str(version)}


def _validation(mode: Mode | None) -> Validation | None:
    return None if mode is None else Validation(mode=mode)
