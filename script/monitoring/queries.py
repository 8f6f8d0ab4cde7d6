"""Names of metrics in PromQL, taken from the metrics themselves: a query can't name one that isn't there."""

from __future__ import annotations

import re
from typing import Final

from ojs_engine.telemetry import metrics
from ojs_features.all import FEATURES

_MENTION: Final = re.compile(r"\bojs_[a-z_]+")
_MADE_FROM: Final = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
_BUILD: Final = "ojs_build_info"


def names() -> dict[str, str]:
    """The metric that each name of a series belongs to: a counter's ends with `_total`, three are made from a histogram."""
    found = {_BUILD: _BUILD}
    families = [listed.family for listed in (*metrics.FAMILIES, *metrics.OF_GATEWAY, *metrics.OF_PROJECTOR)]
    for family in dict.fromkeys([*families, *(one for feature in FEATURES for one in feature.metrics)]):
        described = next(iter(family.describe()))
        for ending in _MADE_FROM[described.type]:
            found[described.name + ending] = described.name
    return found


_NAMES: Final = names()


def metrics_of(expression: str) -> set[str]:
    """The metrics that an expression in PromQL is about. Raises ValueError if there is none of such a name."""
    mentioned = set(_MENTION.findall(expression))
    if unknown := sorted(mentioned - _NAMES.keys()):
        raise ValueError(f"no process serves {', '.join(unknown)}: {expression}")
    return {_NAMES[name] for name in mentioned}
