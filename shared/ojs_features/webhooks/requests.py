"""Requests about webhooks (ojs-webhooks §5, §6)."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, Final, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from ojs_api.webhooks import MAX_NAMES, MAX_PATTERNS, MAX_SECRET, MIN_SECRET, CreateWebhook, Narrowed, UpdateWebhook
from ojs_api.words import DeliveryStatus
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.extensions import NO_EXTENSIONS, SentExtensions, sent_extensions
from ojs_engine.base.fields import (
    choice,
    mapping,
    object_of,
    queue_names,
    shown,
    text_list,
    value_of,
)
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.requests import request_of
from ojs_features.webhooks.records import Owner, Subscription
from ojs_features.webhooks.rules import OWN

MAX_METADATA_BYTES: Final = 4_096

_PATTERN: Final = re.compile(r"\*|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*(\.\*)?", re.ASCII)
_SECRET: Final = re.compile(r"[\x21-\x7e]+", re.ASCII)
_DELIVERY_ID: Final = re.compile(r"del_[0-9a-f-]{36}", re.ASCII)
_STATUSES: Final[tuple[DeliveryStatus, ...]] = get_args(DeliveryStatus)
_ENDS_IN_NUMBER: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?$")
"""Hosts that URL parsers take for IPv4 addresses (URL standard, §3.5)."""
_LONGEST: Final = 128


class Wanted(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Members that a client sets of a subscription. None stands for one that it didn't name."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    queues: tuple[str, ...] | None = None
    job_types: tuple[str, ...] | None = None
    metadata: Raw | None = None
    extensions: SentExtensions = NO_EXTENSIONS
    active: bool | None = None
    secret: str | None = None

    @property
    def brings(self) -> bool:
        """Whether it says which events go where, or that they do: then they are its caller's."""
        aims = (self.url, self.events, self.queues, self.job_types)
        return self.active is True or any(one is not None for one in aims)

    def new(self, secret: str, owner: Owner | None = None) -> Subscription:
        """The subscription to create, with `secret` unless the client has brought one."""
        assert self.url is not None
        assert self.events is not None
        return Subscription(
            id="",
            url=self.url,
            events=self.events,
            queues=self.queues or (),
            job_types=self.job_types or (),
            metadata=self.metadata or Raw(b"{}"),
            extensions=self.extensions.over({}),
            active=self.active is not False,
            secret=self.secret or secret,
            owner=owner,
        )

    def apply(self, old: Subscription, moment: Moment, owner: Owner | None = None) -> Subscription:
        """A subscription with what was named; one that is set active has no reason to be paused any more.

        Its events are brought in the name of `owner` from then on, if the change says anything of that. Raises as
        `SentExtensions.over`.
        """
        given: dict[str, object] = {"owner": owner} if self.brings else {}
        given |= {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        given["extensions"] = self.extensions.over(old.extensions)
        if self.active is not None:
            given["paused"] = None
        return old.changed(moment, **given)


def parse_subscription(body: bytes, limits: PayloadLimits, *, insecure: bool) -> Wanted:
    """Read a new subscription. Raises as `request_of`, and metadata_too_large."""
    return _wanted(body, request_of(body, CreateWebhook), limits, insecure=insecure)


def parse_changes(body: bytes, limits: PayloadLimits, *, insecure: bool) -> Wanted:
    """Read the changes of a subscription. Raises as `request_of`, and metadata_too_large."""
    return _wanted(body, request_of(body, UpdateWebhook), limits, insecure=insecure)


def parse_status(sent: str | None) -> DeliveryStatus | None:
    """The query's `status`; None if it isn't there. Raises invalid_request."""
    return choice(sent, "status", _STATUSES) if sent else None


def parse_cursor(sent: str | None) -> str | None:
    """The id of a delivery after which a list goes on. Raises invalid_request."""
    if sent is not None and _DELIVERY_ID.fullmatch(sent) is None:
        raise invalid("cursor", f"cursor is not one that this list has given: {shown(sent)}")
    return sent


def _wanted(body: bytes, sent: CreateWebhook | UpdateWebhook, limits: PayloadLimits, *, insecure: bool) -> Wanted:
    raw = object_of(body)
    secret = sent.secret if isinstance(sent, CreateWebhook) else None
    queues, job_types = (None, None) if sent.filter is None else _filter(sent.filter, limits)
    return Wanted(
        url=None if sent.url is None else _url(sent.url, insecure=insecure),
        events=None if sent.events is None else _events(sent.events, limits),
        queues=queues,
        job_types=job_types,
        metadata=None if sent.metadata is None else _metadata(value_of(raw["metadata"], "metadata", limits)),
        extensions=sent_extensions(raw, limits, replaced=("filter",)),
        active=sent.active,
        secret=None if secret is None else _secret(secret),
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


def _url(value: str, *, insecure: bool) -> str:
    if not value.isascii() or not value.isprintable() or " " in value:
        raise invalid("url", "url must be an absolute URL in printable ASCII")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError as problem:
        raise invalid("url", f"url can't be read: {problem}") from None
    if parts.scheme not in {"https", "http"} or not parts.hostname or port == 0:
        raise invalid("url", "url must begin with https:// and name a host")
    if _ENDS_IN_NUMBER.search(parts.hostname) and not _is_address(parts.hostname):
        raise invalid("url", "url names a host that ends in a number and is no IPv4 address such as 192.0.2.1")
    if parts.scheme == "http" and not insecure:
        raise invalid("url", "url must begin with https://; http is for servers that are started with webhook_insecure")
    if parts.username is not None or parts.password is not None:
        raise invalid("url", "url must not hold a user or a password: everybody who lists subscriptions would see them")
    if parts.fragment:
        raise invalid("url", "url must not have a fragment (#…), which is never sent")
    return value


def _events(value: list[str], limits: PayloadLimits) -> tuple[str, ...]:
    patterns = tuple(dict.fromkeys(text_list(value, "events", MAX_PATTERNS, limits)))
    for pattern in patterns:
        if _PATTERN.fullmatch(pattern) is None or len(pattern) > _LONGEST:
            raise invalid("events", f"events must hold types like job.completed, job.* or *, not {shown(pattern)}")
        if pattern.startswith(OWN):
            raise invalid("events", f"{pattern} can't be subscribed to: events about webhooks are not delivered to webhooks")
    return patterns


def _filter(sent: Narrowed, limits: PayloadLimits) -> tuple[tuple[str, ...], tuple[str, ...]]:
    queues = queue_names(text_list(sent.queues or [], "filter.queues", MAX_NAMES, limits), "filter.queues", limits)
    return queues, text_list(sent.job_types or [], "filter.job_types", MAX_NAMES, limits)


def _metadata(value: Any) -> Raw:
    encoded = msgspec.json.encode(mapping(value, "metadata"))
    if len(encoded) > MAX_METADATA_BYTES:
        raise too_large("metadata_too_large", "metadata", len(encoded), MAX_METADATA_BYTES)
    return Raw(encoded)


def _secret(value: str) -> str:
    """Check the characters of a secret. What was sent is in no message."""
    if _SECRET.fullmatch(value) is None:
        raise invalid("secret", f"secret must be {MIN_SECRET} to {MAX_SECRET} printable ASCII characters without blanks")
    return value
