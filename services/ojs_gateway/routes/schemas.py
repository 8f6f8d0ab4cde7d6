"""Schemas of jobs' arguments (docs/schemas.md)."""

from __future__ import annotations

from typing import Final

from ojs_core.api.common import OBJECT, PAGED, TYPE_NAME, VERSION
from ojs_core.api.route import Part, Route
from ojs_core.api.schema import Schema, one_of, record, text
from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_core.domain.schemas.record import COMPATIBILITIES, MODES
from ojs_core.wire.schemas import DeletedSchema, OneSchema, SchemaAnswer, SchemaPage, SchemaVersions, WholeSchemaPage
from ojs_gateway.handlers.schemas import SchemaHandlers

_SETTINGS: Final[dict[str, Schema]] = {
    "uri": text("urn:ojs:schema:<type>:v<version> if left out.", most=DEFAULT_LIMITS.max_uri_chars),
    "validation": record({}, {"mode": one_of(*MODES)}, about="What becomes of jobs that don't fit."),
    "compatibility": one_of(*COMPATIBILITIES, about="What the version is held to with regard to the one before it."),
}
_DOCUMENT: Final = OBJECT | {"description": f"JSON Schema 2020-12, at most {DEFAULT_LIMITS.max_schema_bytes} bytes."}
_KNOWN: Final = ("not_found",)
_REFUSALS: Final = ("conflict", "job_type_too_long")

SCHEMAS: Final = Part(
    "Schemas",
    "Schemas that jobs' arguments are held to",
    (
        Route(
            SchemaHandlers,
            SchemaHandlers.list,
            ("GET /schemas listSchemas",),
            "read",
            "List schemas",
            {200: SchemaPage},
            "By type, the newest version of each first.",
            query=PAGED,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.register,
            ("POST /schemas registerSchema",),
            "configure",
            "Register a schema",
            {201: OneSchema},
            "One of `type` and `job_type` is required.",
            body=record({"version": VERSION, "schema": _DOCUMENT}, {"type": TYPE_NAME, "job_type": TYPE_NAME, **_SETTINGS}),
            errors=_REFUSALS,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.read,
            ("GET /schemas/{schema} getSchema",),
            "read",
            "Read a schema",
            {200: OneSchema},
            "By its URI, or the newest version of a job type.",
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.delete,
            ("DELETE /schemas/{schema} deleteSchema",),
            "configure",
            "Delete a schema by its URI",
            {200: DeletedSchema},
            "Jobs that are there already stay.",
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.versions,
            ("GET /schemas/{schema}/versions listSchemaVersions", "GET /admin/schemas/{schema}/versions"),
            "read",
            "List the versions of a job type's schema",
            {200: SchemaVersions},
            "The newest first.",
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.read_version,
            ("GET /schemas/{schema}/{version} getSchemaVersion",),
            "read",
            "Read a version of a job type's schema",
            {200: OneSchema},
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.delete_version,
            ("DELETE /schemas/{schema}/{version} deleteSchemaVersion", "DELETE /admin/schemas/{schema}/{version}"),
            "configure",
            "Delete a version of a job type's schema",
            {200: DeletedSchema},
            "Jobs that are there already stay.",
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.admin_list,
            ("GET /admin/schemas adminListSchemas",),
            "read",
            "List schemas with their documents",
            {200: WholeSchemaPage},
            "By type, the newest version of each first.",
            query=PAGED,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.admin_read,
            ("GET /admin/schemas/{schema} adminGetSchema",),
            "read",
            "Read the newest version of a job type's schema",
            {200: SchemaAnswer},
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.admin_read_version,
            ("GET /admin/schemas/{schema}/{version} adminGetSchemaVersion",),
            "read",
            "Read a version of a job type's schema, unwrapped",
            {200: SchemaAnswer},
            errors=_KNOWN,
        ),
        Route(
            SchemaHandlers,
            SchemaHandlers.put,
            ("PUT /admin/schemas/{schema}/{version} adminPutSchema",),
            "configure",
            "Register a version of a job type's schema, or change its settings",
            {200: SchemaAnswer, 201: SchemaAnswer},
            "201 for a new one, 200 for one that is there with the same document, 409 if the document is another.",
            body=record(
                {},
                {"schema": _DOCUMENT, "args_schema": _DOCUMENT, "type": TYPE_NAME, "version": VERSION, **_SETTINGS},
                about="One of `schema` and `args_schema` is required.",
            ),
            errors=_REFUSALS,
        ),
    ),
)
