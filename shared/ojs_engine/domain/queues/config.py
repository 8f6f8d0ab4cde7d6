"""What can be set for a queue, and how the layers of settings come together (ojs-queue-config §6, §7).

System defaults < the policy of `_default` < the queue's own < the job's. A member that is None, or left out, is not set in
its layer. Times are milliseconds, retention is seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from ojs_api import words
from ojs_api.schemas import Mode
from ojs_engine.base.extensions import NO_EXTENSIONS, Extensions
from ojs_engine.base.numbers import Ms, Positive, Whole
from ojs_engine.domain.job import Retention, Retry

_NO_RETENTION: Final = Retention()

DEFAULT_QUEUE: Final = "_default"
"""The policy of every queue that sets nothing else; no queue can have this name."""
MAINTENANCE: Final = "_maintenance"
"""The record that holds all queues while the system is being worked on (ojs-admin-api §12.1)."""

Overflow = words.Overflow


class Setting(Struct, frozen=True):
    """One setting of a queue."""

    name: str
    """Its name in requests and answers."""
    field: str = ""
    """The attribute of `QueueConfig`, where that has another name."""
    whole: bool = False
    """It is an object that is set as a whole."""
    feature: str = ""
    """The feature that does what it says. A server without that feature refuses it."""

    @property
    def attribute(self) -> str:
        """The attribute of `QueueConfig`."""
        return self.field or self.name


SETTINGS: Final = (
    Setting("max_size"),
    Setting("overflow_policy"),
    Setting("warning_threshold"),
    Setting("concurrency", feature="limits"),
    Setting("rate_limit", whole=True, feature="limits"),
    Setting("starvation_prevention", field="rotation_ms", whole=True),
    Setting("visibility_timeout", field="visibility_timeout_ms"),
    Setting("default_timeout", field="default_timeout_ms"),
    Setting("default_retry", whole=True),
    Setting("retention"),
    Setting("dead_letter", field="dead_letter_max"),
    Setting("allowed_job_types"),
    Setting("strict_pause"),
    Setting("schema_validation", feature="schemas"),
)
_WHOLE: Final = {setting.name: setting.attribute for setting in SETTINGS if setting.whole}
"""Objects that are set as a whole, with the attribute that each is."""


def not_honoured(features: Collection[str]) -> tuple[Setting, ...]:
    """Return the settings of a queue that nobody does what they say, where only these features are there."""
    return tuple(setting for setting in SETTINGS if setting.feature and setting.feature not in features)


class Rate(Struct, frozen=True):
    """At most `limit` starts within any `period_ms`."""

    limit: Positive
    period_ms: Positive


class QueueConfig(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One layer, or all of them together."""

    max_size: Whole | None = None
    """Jobs that may wait in `available`; 0 lifts a bound that a lower layer sets."""
    overflow_policy: Overflow | None = None
    warning_threshold: float | None = None
    """The share of `max_size` from which pushes are answered with warning headers."""
    concurrency: Whole | None = None
    """Jobs of the queue that may be active at once; 0 lifts a limit that a lower layer sets."""
    rate_limit: Rate | None = None
    visibility_timeout_ms: Ms | None = None
    default_timeout_ms: Ms | None = None
    default_retry: Retry | None = None
    retention: Retention | None = None
    dead_letter_max: Whole | None = None
    """Dead letters of the queue that are kept, the newest; 0 for any number."""
    allowed_job_types: tuple[str, ...] | None = None
    """Types that may be pushed; an entry may end in `*`."""
    rotation_ms: Ms | None = None
    """A priority that holds jobs and was passed over for so long comes next, with one job (docs/adr/029); 0 lifts what a lower
    layer sets.
    """
    strict_pause: bool | None = None
    """Refuse pushes while the queue is paused (ojs-http-binding §11.3) instead of keeping them for later."""
    schema_validation: Mode | None = None
    """What becomes of jobs that don't fit their schema, where the schema doesn't say."""
    extensions: Extensions = {}


NOT_SET: Final = QueueConfig()

Patch = Mapping[str, Any]
"""Members of `QueueConfig` by name, those of its `retention` each by their own; None takes one back.

`extensions` are `SentExtensions`.
"""


def patched(config: QueueConfig, patch: Patch) -> QueueConfig:
    """Return a layer with some of its members changed. Raises as `SentExtensions.over`."""
    kept = {name: patch[name] for name in Retention.__struct_fields__ if name in patch}
    members = {name: value for name, value in patch.items() if name not in kept}
    standing = _outside(config.extensions, patch)
    members["extensions"] = patch.get("extensions", NO_EXTENSIONS).over(standing)
    if kept:
        retention = replace(config.retention or _NO_RETENTION, **kept)
        members["retention"] = None if retention == _NO_RETENTION else retention
    return replace(config, **members)


def _outside(extensions: Extensions, named: Collection[str]) -> Extensions:
    """Return what stands outside of the objects that are replaced, by the attributes that are named."""
    replaced = tuple(f"{path}." for path, attribute in _WHOLE.items() if attribute in named)
    return {path: raw for path, raw in extensions.items() if not path.startswith(replaced)}


def layered(lower: QueueConfig, upper: QueueConfig) -> QueueConfig:
    """`upper` over `lower`: what is set above wins, member by member, inside `retention`, too."""
    members = {name: value for name, value in asdict(upper).items() if value is not None}
    members["extensions"] = _outside(lower.extensions, members) | upper.extensions
    if upper.retention is not None and lower.retention is not None:
        kept = {name: value for name, value in asdict(upper.retention).items() if value is not None}
        members["retention"] = replace(lower.retention, **kept)
    return replace(lower, **members)
