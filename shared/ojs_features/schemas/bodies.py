"""Schemas as clients register and read them (ojs-schema-registry §4, ojs-http-binding §15, ojs-job-versioning §6)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Raw
from msgspec.structs import asdict

from ojs_api.schemas import (
    URI_WORDS,
    DeletedSchema,
    PutSchema,
    RegisterSchema,
    Schema,
    SchemaHead,
    SchemaPage,
    SchemaVersion,
    SchemaVersions,
    ValidationSettings,
    WholeSchemaPage,
)
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.extensions import extensions_in
from ojs_engine.base.fields import absent, shown, value_of
from ojs_engine.base.numbers import whole_number
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.versions import parse_version
from ojs_engine.wire.jobs.enqueue import job_type_of
from ojs_engine.wire.members import extended, moment, written
from ojs_engine.wire.pages import Page, pagination
from ojs_engine.wire.requests import request_of
from ojs_features.schemas.document import checked
from ojs_features.schemas.record import SchemaRecord
from ojs_features.schemas.validator import Validator

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[!-~]+", re.ASCII)


# Requests


def parse_schema(body: bytes, limits: PayloadLimits, place: tuple[str, str] | None = None) -> SchemaRecord:
    """Return the schema that a request registers. `place` is the type and version that its path names.

    Raises OjsError invalid_payload, invalid_request, envelope_too_large, job_type_too_long, `unsupported`.
    """
    sent = request_of(body, RegisterSchema) if place is None else request_of(body, PutSchema)
    called = "type" if sent.job_type is None else "job_type"
    name, version = getattr(sent, called), sent.version
    if place is not None:
        name, version = _placed(called, name, version, *place)
    job_type = job_type_of(name, limits, called)
    parse_version(str(version))
    document = sent.args_schema if absent(sent.schema) else sent.schema
    return SchemaRecord(
        uri=_uri(sent.uri, job_type, str(version)),
        type=job_type,
        version=str(version),
        number=type(version) is int,
        document=_document(document, limits),
        mode=None if sent.validation is None else sent.validation.mode,
        compatibility=sent.compatibility,
        extensions=extensions_in(body, limits, replaced=("validation",)),
    )


def _placed(called: str, name: str | None, sent: int | str | None, job_type: str, version: str) -> tuple[str, int | str]:
    """Return the type and version that the path says, which nothing may contradict. The type is `called` so in the request."""
    if name not in {None, job_type}:
        raise invalid(called, f"{called} is {shown(name)}, and the path names {shown(job_type)}")
    if sent is not None and parse_version(str(sent)) != parse_version(version):
        raise invalid("version", f"version is {shown(sent)}, and the path names {shown(version)}")
    number = whole_number(version, 9)
    return job_type, version if number is None else number


def _uri(sent: str | None, job_type: str, version: str) -> str:
    uri = f"urn:ojs:schema:{job_type}:v{version}" if sent is None else sent
    if not _URI.fullmatch(uri):
        raise invalid("uri", f"uri must be {URI_WORDS}, not {shown(sent)}")
    return uri


def _document(raw: Raw, limits: PayloadLimits) -> Raw:
    if absent(raw):
        raise invalid("schema", "schema is required: a JSON Schema (draft 2020-12)")
    if len(raw) > limits.max_schema_bytes:
        raise too_large("envelope_too_large", "schema", len(raw), limits.max_schema_bytes)
    checked(value_of(raw, "schema", limits), limits)
    Validator(raw)
    return Raw(bytes(raw))


# Answers


def schema_answer(record: SchemaRecord) -> Schema:
    """A version with its document."""
    answer = Schema(**asdict(schema_head(record)), schema=written(record.document))
    whole: Schema = written(extended(answer, record.extensions))
    return whole


def schema_head(record: SchemaRecord) -> SchemaHead:
    return SchemaHead(
        uri=record.uri,
        type=record.type,
        job_type=record.type,
        version=_shown_version(record),
        validation=ValidationSettings(mode=record.mode),
        compatibility=record.compatibility or "semver",
        created_at=moment(record.created_at),
    )


def schema_page(records: Sequence[SchemaRecord], page: Page) -> SchemaPage:
    """One page of a list that is there as a whole."""
    shown_records, more = _of_page(records, page)
    return SchemaPage([schema_head(one) for one in shown_records], pagination(page, len(records), more))


def whole_schema_page(records: Sequence[SchemaRecord], page: Page) -> WholeSchemaPage:
    """The same with the documents."""
    shown_records, more = _of_page(records, page)
    return WholeSchemaPage([schema_answer(one) for one in shown_records], pagination(page, len(records), more))


def schema_versions(records: Sequence[SchemaRecord]) -> SchemaVersions:
    """The versions of one type, the newest first."""
    versions = [
        SchemaVersion(version=_shown_version(one), uri=one.uri, created_at=moment(one.created_at), is_latest=index == 0)
        for index, one in enumerate(records)
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
