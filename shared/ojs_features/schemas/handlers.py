"""Schemas of jobs' arguments: register, list, read, delete (docs/schemas.md)."""

from __future__ import annotations

from ojs_api.schemas import OneSchema
from ojs_engine.api.call import Call, Response
from ojs_engine.wire.pages import MAX_PAGE, parse_page
from ojs_features.context import HandlerContext
from ojs_features.schemas.bodies import (
    deleted_schema,
    parse_schema,
    schema_answer,
    schema_page,
    schema_versions,
    whole_schema_page,
)
from ojs_features.schemas.registry import Schemas


class SchemaHandlers:
    """Handlers under /schemas and /admin/schemas."""

    def __init__(self, context: HandlerContext) -> None:
        self._schemas = context.store.of(Schemas)
        self._limits = context.limits

    # By URI (ojs-http-binding §15), and by type and version (ojs-schema-registry §10)

    async def list(self, call: Call) -> Response:
        """GET /schemas: by type, the newest version of each first."""
        page = parse_page(call.queries)
        return Response(200, schema_page((await self._schemas.catalogue()).all(), page))

    async def register(self, call: Call) -> Response:
        """POST /schemas: 409 if the version or the URI is taken."""
        wanted = await call.read(parse_schema, self._limits)
        record = await self._schemas.register(wanted, self._limits.max_schemas)
        return Response(201, OneSchema(schema_answer(record)))

    async def read(self, call: Call) -> Response:
        """GET /schemas/{schema}: by its URI, or the newest of a job type, which has no colon."""
        known = await self._schemas.catalogue()
        name = call.parameters[0]
        return Response(200, OneSchema(schema_answer(known.at(name) if ":" in name else known.versions(name)[0])))

    async def read_version(self, call: Call) -> Response:
        """GET /schemas/{schema}/{version}."""
        record = (await self._schemas.catalogue()).version(*call.parameters)
        return Response(200, OneSchema(schema_answer(record)))

    async def versions(self, call: Call) -> Response:
        """GET /schemas/{schema}/versions, GET /admin/schemas/{type}/versions."""
        return Response(200, schema_versions((await self._schemas.catalogue()).versions(call.parameters[0])))

    async def delete(self, call: Call) -> Response:
        """DELETE /schemas/{schema}: by its URI."""
        record = await self._schemas.delete(lambda known: known.at(call.parameters[0]))
        return Response(200, deleted_schema(record))

    async def delete_version(self, call: Call) -> Response:
        """DELETE /schemas/{schema}/{version}, DELETE /admin/schemas/{type}/{version}."""
        record = await self._schemas.delete(lambda known: known.version(*call.parameters))
        return Response(200, deleted_schema(record))

    # As operators and the admin UI have them: nothing is wrapped

    async def admin_list(self, call: Call) -> Response:
        """GET /admin/schemas: with the documents."""
        page = parse_page(call.queries, default=MAX_PAGE)
        return Response(200, whole_schema_page((await self._schemas.catalogue()).all(), page))

    async def admin_read(self, call: Call) -> Response:
        """GET /admin/schemas/{type}: the newest version."""
        return Response(200, schema_answer((await self._schemas.catalogue()).versions(call.parameters[0])[0]))

    async def admin_read_version(self, call: Call) -> Response:
        """GET /admin/schemas/{type}/{version}."""
        return Response(200, schema_answer((await self._schemas.catalogue()).version(*call.parameters)))

    async def put(self, call: Call) -> Response:
        """PUT /admin/schemas/{type}/{version}: 201 for a new version, 200 for one that is there with the same document."""
        job_type, version = call.parameters
        wanted = await call.read(parse_schema, self._limits, (job_type, version))
        created, record = await self._schemas.put(wanted, self._limits.max_schemas)
        return Response(201 if created else 200, schema_answer(record))
