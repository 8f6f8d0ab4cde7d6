"""Cron entries as clients write them: `cron` with the job's members flat beside it (HTTP binding, SDKs), or `expression` with
a `job_template` (CLI). An entry as an answer has it can be sent back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, Struct

from ojs_core.base.errors import invalid, naming, not_found, too_large
from ojs_core.base.extensions import sent_extensions
from ojs_core.base.fields import absent, integer, is_extension, members_of, object_of, shown, value_of
from ojs_core.base.numbers import whole_number
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.domain.cron.changes import Registration
from ojs_core.domain.cron.expression import BadExpression, parse_expression
from ojs_core.domain.cron.record import OVERLAPS, Cron
from ojs_core.domain.cron.schedule import BadZone, check_zone
from ojs_core.domain.job import Job
from ojs_core.domain.members import OF_SERVER
from ojs_core.wire.jobs.enqueue import TOP_LEVEL_ONLY, read_envelope
from ojs_core.wire.members import AnswerWarning, encode

MOST_COMING: Final = 50
"""Runs to come in one answer."""
DEFAULT_COMING: Final = 5
DEFAULT_PREVIEW: Final = 10
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{0,254}", re.ASCII)
_EXPRESSIONS: Final = ("cron", "expression", "schedule")
_MAX_DESCRIPTION: Final = 1_000
_OWN: Final = frozenset(
    {
        *_EXPRESSIONS,
        "name",
        "timezone",
        "overlap_policy",
        "enabled",
        "description",
        "job_template",
        # Set by the server alone, ignored where clients send them (CRON-06)
        "id",
        "status",
        "last_run_at",
        "next_run_at",
        "run_count",
        "waiting_runs",
        "created_at",
        "updated_at",
    }
)
_NO_ARGS: Final = Raw(b"[]")


def parse_registration(body: bytes, limits: PayloadLimits, told: list[AnswerWarning] | None = None) -> Registration:
    """POST /cron in either dialect. The job is read like that of a push, so everything in it is checked now. `told`
    takes warnings of members that have no effect.

    Raises OjsError: invalid_payload, invalid_request naming the field, and whatever a push of the job would be refused with.
    """
    if len(body) > limits.max_envelope_bytes:
        raise too_large("envelope_too_large", "the cron entry", len(body), limits.max_envelope_bytes)
    members = object_of(body)
    if "name" not in members and "cron_job" in members:
        members = members_of(members["cron_job"], "cron_job")
    draft, options = _template(members, limits, told)
    return Registration(
        name=_name(_value(members, "name", limits)),
        expression=_expression(members, limits),
        timezone=_timezone(_value(members, "timezone", limits)),
        draft=draft,
        options=options,
        overlap=_overlap(_value(members, "overlap_policy", limits)),
        enabled=_flag(_value(members, "enabled", limits)),
        description=_description(_value(members, "description", limits)),
        extensions=sent_extensions(members, limits).over({}, limits),
    )


def parse_switch(body: bytes, limits: PayloadLimits) -> bool | None:
    """PATCH /cron/{name} that pauses or resumes; None for one that says anything else, for `parse_patch`."""
    members = object_of(body)
    return _flag(_value(members, "enabled", limits)) if members.keys() == {"enabled"} else None


def parse_patch(body: bytes, cron: Cron, limits: PayloadLimits, told: list[AnswerWarning] | None = None) -> Registration:
    """PATCH /cron/{name}: the entry with the members that are sent; those of `options` are changed one by one."""
    sent = object_of(body)
    name = _value(sent, "name", limits)
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


def parse_preview(body: bytes, limits: PayloadLimits) -> Preview:
    """POST /admin/cron/preview `{cron, timezone?, count?}`. Raises OjsError as a registration does."""
    members = object_of(body)
    count = _value(members, "count", limits)
    return Preview(
        _expression(members, limits),
        _timezone(_value(members, "timezone", limits)),
        DEFAULT_PREVIEW if count is None else integer(count, "count", 1, MOST_COMING),
    )


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


def _value(members: Mapping[str, Raw], name: str, limits: PayloadLimits) -> Any:
    """A member decoded; None if it is absent."""
    raw = members.get(name)
    return None if raw is None else value_of(raw, name, limits)


def _name(value: Any) -> str:
    if value is None:
        raise invalid("name", "name is required: it identifies the entry, e.g. daily-report")
    if type(value) is not str or _NAME.fullmatch(value) is None:
        raise invalid("name", f"name must match ^[a-z0-9][a-z0-9\\-.]*$ and have at most 255 characters, not {shown(value)}")
    return value


def _expression(members: Mapping[str, Raw], limits: PayloadLimits) -> str:
    values = {name: _value(members, name, limits) for name in _EXPRESSIONS}
    sent = {name: value for name, value in values.items() if value is not None}
    if not sent:
        raise invalid("cron", "cron is required: a cron expression such as '0 9 * * MON-FRI' (also accepted as expression)")
    field, value = next(iter(sent.items()))
    if type(value) is not str:
        raise invalid(
            field, f"{field} must be a cron expression as text, not {shown(value)}", canonical="INVALID_CRON_EXPRESSION"
        )
    if any(other != value for other in sent.values()):
        raise invalid(field, f"{' and '.join(sent)} are the same member under different names, but differ")
    try:
        parse_expression(value)
    except BadExpression as problem:
        message = f"{field} is not a valid cron expression: {problem}"
        raise invalid(field, message, canonical="INVALID_CRON_EXPRESSION") from None
    return value


def _timezone(value: Any) -> str:
    if value is None:
        return "UTC"
    try:
        return check_zone(value if type(value) is str else "")
    except BadZone as problem:
        raise invalid("timezone", f"timezone {shown(value)} is {problem}") from None


def _overlap(value: Any) -> Any:
    if value is None:
        return "skip"
    if value not in OVERLAPS:
        raise invalid("overlap_policy", f"overlap_policy must be one of {', '.join(OVERLAPS)}, not {shown(value)}")
    return value


def _flag(value: Any) -> bool | None:
    if value is not None and type(value) is not bool:
        raise invalid("enabled", f"enabled must be true or false, not {shown(value)}")
    return value


def _description(value: Any) -> str | None:
    if value is not None and (type(value) is not str or len(value) > _MAX_DESCRIPTION):
        raise invalid("description", f"description must be a text of at most {_MAX_DESCRIPTION} characters")
    return value


def _template(members: Mapping[str, Raw], limits: PayloadLimits, told: list[AnswerWarning] | None) -> tuple[Job, Raw]:
    """The draft of every run's job, its relative times counted from 0, and its options, wherever they were sent."""
    envelope = {name: raw for name, raw in members.items() if name not in _OWN}
    template = members.get("job_template")
    if template is not None and not absent(template):
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
