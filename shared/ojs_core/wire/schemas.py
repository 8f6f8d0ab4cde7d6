"""Schemas as clients register and read them (ojs-schema-registry §4, ojs-http-binding §15, ojs-job-versioning §6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_core.base.errors import OjsError, invalid, too_large
from ojs_core.base.extensions import sent_extensions
from ojs_core.base.fields import absent, check_known, check_once, choice, kind_of, mapping, object_of, shown, value_of
from ojs_core.base.numbers import whole_number
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.base.times import format_ms
from ojs_core.domain.schemas.document import checked
from ojs_core.domain.schemas.record import COMPATIBILITIES, MODES, Compatibility, Mode, SchemaRecord
from ojs_core.domain.schemas.validator import Validator
from ojs_core.domain.versions import parse_version
from ojs_core.wire.jobs.enqueue import job_type_of
from ojs_core.wire.members import Extended, JsonObject, OpenStruct, Timestamp, extended, given
from ojs_core.wire.pages import Page, Pagination, pagination

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[!-~]+", re.ASCII)
_KNOWN: Final = (
    "args_schema",
    "compatibility",
    "compatible_with",
    "created_at",
    "job_type",
    "schema",
    "type",
    "uri",
    "validation",
    "version",
)


class ValidationSettings(OpenStruct, omit_defaults=True):
    """What becomes of jobs that don't fit. Left out, their queue's `schema_validation` says it."""

    mode: Mode | UnsetType = UNSET


class SchemaSummary(Struct, kw_only=True):
    """A version of a job type's schema."""

    uri: str
    type: str
    job_type: str
    version: Annotated[int | str, Meta(description="As it was sent.")]
    validation: ValidationSettings
    compatibility: Annotated[Compatibility, Meta(description="What it was held to with regard to the version before it.")]
    created_at: Timestamp


class SchemaAnswer(SchemaSummary, OpenStruct, kw_only=True):
    """A version of a job type's schema, with the document as it was sent."""

    schema: JsonObject


SchemaView = SchemaAnswer | Extended[SchemaAnswer]


class OneSchema(Struct):
    """The answer about one schema."""

    schema: SchemaView


class SchemaPage(Struct):
    """A page of the list of schemas, by type, the newest version of each first."""

    schemas: list[SchemaSummary]
    pagination: Pagination


class WholeSchemaPage(Struct):
    """The same with the documents."""

    schemas: list[SchemaView]
    pagination: Pagination


class SchemaVersion(Struct):
    """One version of a job type's schema."""

    version: int | str
    uri: str
    created_at: Timestamp
    is_latest: bool


class SchemaVersions(Struct):
    """The versions of a job type's schema, the newest first."""

    type: str
    versions: list[SchemaVersion]


class DeletedSchema(Struct, kw_only=True):
    """A version that is gone. Jobs that are there already stay."""

    deleted: bool
    uri: str
    type: str
    version: int | str


# Requests


def parse_schema(body: bytes, limits: PayloadLimits, place: tuple[str, str] | None = None) -> SchemaRecord:
    """`{uri?, type | job_type, version, schema | args_schema, validation?: {mode}, compatibility?}`; `place` is the type and
    version that the path names, which then may be left out.

    Raises OjsError invalid_payload, invalid_request, envelope_too_large, job_type_too_long, `unsupported`.
    """
    members = object_of(check_once(body))
    check_known(members, _KNOWN)
    if not absent(members.get("compatible_with", Raw())):
        message = "compatible_with is not supported by this server: which versions a worker runs is said by its handlers"
        raise OjsError("unsupported", message, details={"field": "compatible_with"})
    document = members.pop("schema", Raw())
    document = members.pop("args_schema", Raw()) if absent(document) else document
    sent = {name: value_of(raw, name, limits) for name, raw in members.items()}
    sent |= {"type": _sent(sent, "job_type", "type")}
    if place is not None:
        sent = _placed(sent, *place)
    job_type = job_type_of(sent["type"], limits)
    version, number = _version(sent.get("version"))
    return SchemaRecord(
        uri=_uri(sent.get("uri"), job_type, version, limits),
        type=job_type,
        version=version,
        number=number,
        document=_document(document, limits),
        mode=_mode(sent.get("validation")),
        compatibility=_compatibility(sent.get("compatibility")),
        extensions=sent_extensions(members, limits, replaced=("validation",)).over({}, limits),
    )


def _sent(sent: dict[str, Any], *names: str) -> Any:
    return next((sent[name] for name in names if sent.get(name) is not None), None)


def _placed(sent: dict[str, Any], job_type: str, version: str) -> dict[str, Any]:
    """What was sent, with what the path says, which nothing may contradict."""
    named = sent.get("version")
    if sent["type"] not in {None, job_type}:
        raise invalid("type", f"type is {shown(sent['type'])}, and the path names {shown(job_type)}")
    if named is not None and parse_version(_version(named)[0]) != parse_version(version):
        raise invalid("version", f"version is {shown(named)}, and the path names {shown(version)}")
    number = whole_number(version, 9)
    return sent | {"type": job_type, "version": version if number is None else number}


def _version(value: Any) -> tuple[str, bool]:
    """A version as text, and whether it was sent as a number: a whole one, since 1.10 as a number is 1.1."""
    number = type(value) is int
    if not number and type(value) is not str:
        raise invalid("version", f"version is required: a text such as 2.0.0, or a whole number, not {kind_of(value)}")
    text = str(value)
    parse_version(text)
    return text, number


def _uri(value: Any, job_type: str, version: str, limits: PayloadLimits) -> str:
    uri = f"urn:ojs:schema:{job_type}:v{version}" if value is None else value
    if type(uri) is not str or len(uri) > limits.max_uri_chars or not _URI.fullmatch(uri):
        message = f"uri must be a URI of at most {limits.max_uri_chars} characters, such as urn:ojs:schema:{job_type}:v1"
        raise invalid("uri", f"{message}, not {shown(value)}")
    return uri


def _document(raw: Raw, limits: PayloadLimits) -> Raw:
    if absent(raw):
        raise invalid("schema", "schema is required: a JSON Schema (draft 2020-12)")
    if len(raw) > limits.max_schema_bytes:
        raise too_large("envelope_too_large", "schema", len(raw), limits.max_schema_bytes)
    checked(value_of(raw, "schema", limits), limits)
    Validator(raw)
    return Raw(bytes(raw))


def _mode(value: Any) -> Mode | None:
    if value is None:
        return None
    members = mapping(value, "validation")
    if "default_mode" in members:
        message = "validation.default_mode is a setting of queues: set schema_validation of a queue, or of _default for all"
        raise OjsError("unsupported", message, details={"field": "validation.default_mode"})
    check_known((f"validation.{name}" for name in members), ("validation.mode",))
    return None if members.get("mode") is None else choice(members["mode"], "validation.mode", MODES)


def _compatibility(value: Any) -> Compatibility | None:
    return None if value is None else choice(value, "compatibility", COMPATIBILITIES)


# Answers


def schema_answer(record: SchemaRecord) -> SchemaView:
    """A version with its document."""
    answer = SchemaAnswer(**msgspec.structs.asdict(schema_summary(record)), schema=record.document)
    return extended(answer, record.extensions)


def schema_summary(record: SchemaRecord) -> SchemaSummary:
    return SchemaSummary(
        uri=record.uri,
        type=record.type,
        job_type=record.type,
        version=_shown_version(record),
        validation=ValidationSettings(given(record.mode)),
        compatibility=record.compatibility or "semver",
        created_at=format_ms(record.created_at),
    )


def schema_page(records: Sequence[SchemaRecord], page: Page) -> SchemaPage:
    """One page of a list that is there as a whole."""
    shown_records, more = _of_page(records, page)
    return SchemaPage([schema_summary(one) for one in shown_records], pagination(page, len(records), more))


def whole_schema_page(records: Sequence[SchemaRecord], page: Page) -> WholeSchemaPage:
    """The same with the documents."""
    shown_records, more = _of_page(records, page)
    return WholeSchemaPage([schema_answer(one) for one in shown_records], pagination(page, len(records), more))


def schema_versions(records: Sequence[SchemaRecord]) -> SchemaVersions:
    """The versions of one type, the newest first."""
    versions = [
        SchemaVersion(_shown_version(one), one.uri, format_ms(one.created_at), index == 0) for index, one in enumerate(records)
    ]
    return SchemaVersions(records[0].type, versions)


def deleted_schema(record: SchemaRecord) -> DeletedSchema:
    return DeletedSchema(deleted=True, uri=record.uri, type=record.type, version=_shown_version(record))


def _shown_version(record: SchemaRecord) -> int | str:
    return int(record.version) if record.number else record.version


def _of_page(records: Sequence[SchemaRecord], page: Page) -> tuple[Sequence[SchemaRecord], str | None]:
    """What is on a page, and the cursor of the next: the last type and version."""
    start = page.offset
    if page.cursor is not None:
        job_type, _, version = page.cursor.partition("/")
        order = parse_version(version, "cursor")
        start = sum(one.type < job_type or (one.type == job_type and one.order >= order) for one in records)
    here = records[start : start + page.limit]
    return here, f"{here[-1].type}/{here[-1].version}" if here and start + page.limit < len(records) else None
