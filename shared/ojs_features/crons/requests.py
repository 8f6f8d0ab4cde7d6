"""Cron entries as clients write them: `cron` with the job's members flat beside it (HTTP binding, SDKs), or
`expression` with a `job_template` (CLI). An entry as an answer has it can be sent back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, Struct

from ojs_api.crons import MOST_COMING, NAME_WORDS, PreviewCron, RegisterCron, ScheduleRequest, UpdateCron
from ojs_engine.base.errors import invalid, naming, not_found, too_large
from ojs_engine.base.extensions import sent_extensions
from ojs_engine.base.fields import absent, integer, is_extension, members_of, object_of, shown
from ojs_engine.base.numbers import whole_number
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import Job
from ojs_engine.domain.members import OF_SERVER
from ojs_engine.wire.jobs.enqueue import TOP_LEVEL_ONLY, read_envelope
from ojs_engine.wire.members import AnswerWarning, encode
from ojs_engine.wire.requests import request_of
from ojs_features.crons.changes import Registration
from ojs_features.crons.expression import BadExpression, parse_expression
from ojs_features.crons.record import Cron
from ojs_features.crons.schedule import BadZone, check_zone

DEFAULT_COMING: Final = 5
DEFAULT_PREVIEW: Final = 10
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{0,254}", re.ASCII)
_EXPRESSIONS: Final = ("cron", "expression", "schedule")
_OWN: Final = frozenset(RegisterCron.__struct_encode_fields__)
_NO_ARGS: Final = Raw(b"[]")


def parse_registration(body: bytes, limits: PayloadLimits, told: list[AnswerWarning] | None = None) -> Registration:
    """POST /cron in either dialect. The job is read like that of a push, so everything in it is checked now. `told`
    takes warnings of members that have no effect.

    Raises OjsError: invalid_payload, invalid_request naming the field, and whatever a push of the job would be
    refused with.
    """
    if len(body) > limits.max_envelope_bytes:
        raise too_large("envelope_too_large", "the cron entry", len(body), limits.max_envelope_bytes)
    members = object_of(body)
    if "name" not in members and "cron_job" in members:
        body = bytes(members["cron_job"])
        members = members_of(members["cron_job"], "cron_job")
    sent = request_of(body, RegisterCron)
    draft, options = _template(members, limits, told)
    return Registration(
        name=_name(sent.name),
        expression=_expression(sent),
        timezone=_timezone(sent.timezone),
        draft=draft,
        options=options,
        overlap=sent.overlap_policy or "skip",
        enabled=sent.enabled,
        description=sent.description,
        extensions=sent_extensions(members, limits).over({}, limits),
    )


def parse_switch(body: bytes) -> bool | None:
    """PATCH /cron/{name} that pauses or resumes; None for one that says anything else, for `parse_patch`."""
    enabled = request_of(body, UpdateCron).enabled
    return enabled if object_of(body).keys() == {"enabled"} else None


def parse_patch(body: bytes, cron: Cron, limits: PayloadLimits, told: list[AnswerWarning] | None = None) -> Registration:
    """PATCH /cron/{name}: the entry with the members that are sent; those of `options` are changed one by one."""
    sent = object_of(body)
    name = request_of(body, UpdateCron).name
    if name not in {None, cron.name}:
        raise invalid("name", f"name can't be changed; register {shown(name)} and delete {cron.name}")
    if not sent or ("enabled" in sent and absent(sent["enabled"])):
        raise invalid("enabled", "enabled must be true or false, or other members say what to change")
    template = sent.get("job_template", Raw())
    asked = {name: raw for name, raw in sent.items() if name not in _OWN and not is_extension(name)}
    if not absent(template):
        asked |= members_of(template, "job_template")
    options = members_of(cron.options, "options")
    standing = {
        **{name: raw for name, raw in options.items() if cron.extensions.get(name) != raw},
        "type": cron.draft.type,
        "args": cron.draft.args,
        "meta": cron.draft.meta,  # that of the options is in it
    }
    merged: dict[str, Any] = {
        **sent_extensions(sent, limits).over(cron.extensions, limits),
        "name": cron.name,
        "timezone": cron.timezone,
        "overlap_policy": cron.overlap,
        "enabled": cron.enabled,
        "description": cron.description,
        **{name: raw for name, raw in sent.items() if name in _OWN and name != "job_template"},
        "job_template": {name: value for name, value in standing.items() if name not in asked} | asked,
    }
    if not any(name in sent for name in _EXPRESSIONS):
        merged["expression"] = cron.expression
    return parse_registration(encode(merged), limits, told)


class Preview(Struct, frozen=True):
    """An expression in a zone, and how many of its runs are asked for."""

    expression: str
    timezone: str
    count: int


def parse_preview(body: bytes) -> Preview:
    """POST /admin/cron/preview `{cron, timezone?, count?}`. Raises OjsError as a registration does."""
    sent = request_of(body, PreviewCron)
    count = DEFAULT_PREVIEW if sent.count is None else integer(sent.count, "count", 1, MOST_COMING)
    return Preview(_expression(sent), _timezone(sent.timezone), count)


def parse_count(text: str | None) -> int:
    """Read how many runs to come `?count` asks for. Raises invalid_request."""
    if not text:
        return DEFAULT_COMING
    count = whole_number(text, 9)
    if count is None or not 1 <= count <= MOST_COMING:
        raise invalid("count", f"count must be an integer from 1 to {MOST_COMING}, not {shown(text)}")
    return count


def cron_name(text: str) -> str:
    """The name of an existing entry as a path says it; what can't be one is `not_found`."""
    if _NAME.fullmatch(text) is None:
        raise not_found("cron", text[:64])
    return text


def _name(sent: str) -> str:
    if _NAME.fullmatch(sent) is None:
        raise invalid("name", f"name must be {NAME_WORDS}, not {shown(sent)}")
    return sent


def _expression(request: ScheduleRequest) -> str:
    values: dict[str, str | None] = {name: getattr(request, name) for name in _EXPRESSIONS}
    sent = {name: value for name, value in values.items() if value is not None}
    if not sent:
        raise invalid("cron", "cron is required: a cron expression such as '0 9 * * MON-FRI' (also accepted as expression)")
    field, value = next(iter(sent.items()))
    if any(other != value for other in sent.values()):
        raise invalid(field, f"{' and '.join(sent)} are the same member under different names, but differ")
    try:
        parse_expression(value)
    except BadExpression as problem:
        message = f"{field} is not a valid cron expression: {problem}"
        raise invalid(field, message, canonical="INVALID_CRON_EXPRESSION") from None
    return value


def _timezone(sent: str | None) -> str:
    if sent is None:
        return "UTC"
    try:
        return check_zone(sent)
    except BadZone as problem:
        raise invalid("timezone", f"timezone {shown(sent)} is {problem}") from None


def _template(members: Mapping[str, Raw], limits: PayloadLimits, told: list[AnswerWarning] | None) -> tuple[Job, Raw]:
    """The draft of every run's job, its relative times counted from 0, and its options, wherever they were sent."""
    envelope = {name: raw for name, raw in members.items() if name not in _OWN}
    template = members.get("job_template", Raw())
    if not absent(template):
        envelope |= members_of(template, "job_template")
    if "id" in envelope:
        raise invalid("job_template.id", "job_template.id can't be set: the job of each run gets an id of its own")
    if absent(envelope.get("args", Raw())):
        envelope["args"] = _NO_ARGS
    sent = envelope.get("options", Raw())
    asked = {} if absent(sent) else members_of(sent, "options")
    beside = {name: raw for name, raw in envelope.items() if _may_be_option(name) and name not in asked}
    options = Raw(encode({name: raw for name, raw in (beside | asked).items() if not absent(raw)}))
    if asked:
        envelope |= _merged_meta(envelope, asked)
        envelope["options"] = Raw(encode({name: raw for name, raw in asked.items() if name != "meta"}))
    return read_envelope(envelope, 0, limits, told=told, beside=_OWN), options


def _may_be_option(name: str) -> bool:
    """Whether a member beside `options` means the same in them; `meta` of both is merged."""
    return name != "meta" and name not in TOP_LEVEL_ONLY and name not in OF_SERVER


@naming("INVALID_METADATA")
def _merged_meta(envelope: Mapping[str, Raw], options: Mapping[str, Raw]) -> dict[str, Raw]:
    """`meta` beside the options and in them, together."""
    found = [raw for raw in (envelope.get("meta", Raw()), options.get("meta", Raw())) if not absent(raw)]
    if not found:
        return {}
    merged: dict[str, Raw] = {}
    for raw in found:
        merged |= members_of(raw, "meta")
    return {"meta": Raw(encode(merged))}
