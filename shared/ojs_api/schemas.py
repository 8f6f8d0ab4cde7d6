"""Schemas of jobs' arguments (docs/schemas.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Raw, Struct

from ojs_api.members import (
    HIDDEN,
    REQUIRED,
    Ignored,
    JsonObject,
    Moment,
    OpenAnswer,
    TypeName,
    Undecoded,
    Version,
    one_of,
    unsupported,
    wanted,
)
from ojs_api.operations import Operation, Subject
from ojs_api.pages import PAGED, Pagination

Mode = Literal["off", "warn", "strict"]
"""What happens to a job whose arguments don't fit (ojs-schema-registry §7.2): nothing, a warning, a refusal."""
Compatibility = Literal["semver", "none", "backward", "forward", "full"]
"""What a version is held to with regard to the one before it (docs/adr/047)."""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
MAX_DOCUMENT_BYTES: Final = 65_536
MAX_URI_CHARS: Final = 2_048
URI_WORDS: Final = f"a URI of at most {MAX_URI_CHARS} characters, such as urn:ojs:schema:mail.send:v1"

_Compared = Annotated[str, one_of(Compatibility), Meta(description="What it was held to with regard to the version before it.")]
_Uri = Annotated[
    str,
    Meta(max_length=MAX_URI_CHARS, description="urn:ojs:schema:<type>:v<version> if left out."),
    wanted(URI_WORDS),
]
_Document = Annotated[
    Undecoded,
    Meta(
        description=f"JSON Schema 2020-12, at most {MAX_DOCUMENT_BYTES} bytes.",
        extra_json_schema={"type": "object", "additionalProperties": {}},
    ),
]
_NOT_GIVEN: Final[Any] = Raw()
_BY_HANDLERS: Final = unsupported("is not supported by this server: which versions a worker runs is said by its handlers")


class Validation(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Settings of validation in a request."""

    mode: Mode | None = None
    default_mode: Annotated[
        Any, unsupported("is a setting of queues: set schema_validation of a queue, or of _default for all")
    ] = None


class SchemaSettings(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What requests that register a schema may say of it."""

    uri: _Uri | None = None
    validation: Annotated[Validation, Meta(description="What becomes of jobs that don't fit.")] | None = None
    compatibility: (
        Annotated[Compatibility, Meta(description="What the version is held to with regard to the one before it.")] | None
    ) = None
    type: TypeName | None = None
    compatible_with: Annotated[Any, _BY_HANDLERS] = None
    created_at: Ignored = None


class RegisterSchema(SchemaSettings, kw_only=True):
    """A new version of a job type's schema. One of `type` and `job_type` is required."""

    version: Version
    schema: Annotated[_Document, REQUIRED] = _NOT_GIVEN
    job_type: TypeName | None = None
    args_schema: Annotated[Undecoded, HIDDEN] = _NOT_GIVEN


class PutSchema(SchemaSettings, kw_only=True):
    """One of `schema` and `args_schema` is required."""

    version: Version | None = None
    schema: _Document = _NOT_GIVEN
    job_type: Annotated[TypeName, HIDDEN] | None = None
    args_schema: _Document = _NOT_GIVEN


class ValidationSettings(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of jobs that don't fit. Left out, their queue's `schema_validation` says it."""

    mode: Annotated[str, one_of(Mode)] | None = None


class SchemaHead(Struct, frozen=True, kw_only=True):
    """A version of a job type's schema."""

    uri: str
    type: str
    job_type: str
    version: Annotated[int | str, Meta(description="As it was sent.")]
    validation: ValidationSettings
    compatibility: _Compared
    created_at: Moment


class Schema(SchemaHead, OpenAnswer, frozen=True, kw_only=True):
    """A version of a job type's schema, with the document as it was sent."""

    schema: JsonObject


class OneSchema(Struct, frozen=True):
    """The answer about one schema."""

    schema: Schema


class SchemaPage(Struct, frozen=True):
    """A page of the list of schemas, by type, the newest version of each first."""

    schemas: list[SchemaHead]
    pagination: Pagination


class WholeSchemaPage(Struct, frozen=True):
    """The same with the documents."""

    schemas: list[Schema]
    pagination: Pagination


class SchemaVersion(Struct, frozen=True, kw_only=True):
    """One version of a job type's schema."""

    version: int | str
    uri: str
    created_at: Moment
    is_latest: bool


class SchemaVersions(Struct, frozen=True):
    """The versions of a job type's schema, the newest first."""

    type: str
    versions: list[SchemaVersion]


class DeletedSchema(Struct, frozen=True, kw_only=True):
    """A version that is gone. Jobs that are there already stay."""

    deleted: bool
    uri: str
    type: str
    version: int | str


_NEWEST_FIRST: Final = "By type, the newest version of each first."
_JOBS_STAY: Final = "Jobs that are there already stay."
_UNKNOWN: Final = ("not_found",)
_REFUSED: Final = ("conflict", "job_type_too_long")

# fmt: off
LIST: Final = Operation(
    "listSchemas", "GET /schemas", "read", "List schemas",
    {200: SchemaPage}, _NEWEST_FIRST, query=PAGED,
)
REGISTER: Final = Operation(
    "registerSchema", "POST /schemas", "configure", "Register a schema",
    {201: OneSchema}, "One of `type` and `job_type` is required.", body=RegisterSchema, errors=_REFUSED,
)
GET: Final = Operation(
    "getSchema", "GET /schemas/{schema}", "read", "Read a schema",
    {200: OneSchema}, "By its URI, or the newest version of a job type.", errors=_UNKNOWN,
)
DELETE: Final = Operation(
    "deleteSchema", "DELETE /schemas/{schema}", "configure", "Delete a schema by its URI",
    {200: DeletedSchema}, _JOBS_STAY, errors=_UNKNOWN,
)
VERSIONS: Final = Operation(
    "listSchemaVersions", "GET /schemas/{schema}/versions", "read", "List the versions of a job type's schema",
    {200: SchemaVersions}, "The newest first.", also=("GET /admin/schemas/{schema}/versions",), errors=_UNKNOWN,
)
GET_VERSION: Final = Operation(
    "getSchemaVersion", "GET /schemas/{schema}/{version}", "read", "Read a version of a job type's schema",
    {200: OneSchema}, errors=_UNKNOWN,
)
DELETE_VERSION: Final = Operation(
    "deleteSchemaVersion", "DELETE /schemas/{schema}/{version}", "configure", "Delete a version of a job type's schema",
    {200: DeletedSchema}, _JOBS_STAY, also=("DELETE /admin/schemas/{schema}/{version}",), errors=_UNKNOWN,
)
LIST_WHOLE: Final = Operation(
    "adminListSchemas", "GET /admin/schemas", "read", "List schemas with their documents",
    {200: WholeSchemaPage}, _NEWEST_FIRST, query=PAGED,
)
GET_WHOLE: Final = Operation(
    "adminGetSchema", "GET /admin/schemas/{schema}", "read", "Read the newest version of a job type's schema",
    {200: Schema}, errors=_UNKNOWN,
)
GET_WHOLE_VERSION: Final = Operation(
    "adminGetSchemaVersion", "GET /admin/schemas/{schema}/{version}", "read",
    "Read a version of a job type's schema, unwrapped",
    {200: Schema}, errors=_UNKNOWN,
)
PUT_VERSION: Final = Operation(
    "adminPutSchema", "PUT /admin/schemas/{schema}/{version}", "configure",
    "Register a version of a job type's schema, or change its settings",
    {200: Schema, 201: Schema},
    "201 for a new one, 200 for one that is there with the same document, 409 if the document is another.",
    body=PutSchema, errors=_REFUSED,
)
SCHEMAS: Final = Subject(
    "Schemas", "Schemas that jobs' arguments are held to",
    (
        LIST, REGISTER, GET, DELETE, VERSIONS, GET_VERSION, DELETE_VERSION,
        LIST_WHOLE, GET_WHOLE, GET_WHOLE_VERSION, PUT_VERSION,
    ),
)
