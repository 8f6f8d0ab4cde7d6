"""The places where a feature is plugged into the server.

A feature is a folder of `ojs_features`. The server is composed of the features that `ojs_features/all.py` lists, and
runs without any of them. A place that a feature needs is a member of `Feature`, and never an import of the feature.
"""

from __future__ import annotations

from msgspec import Struct

from ojs_core.api.route import Part


class Feature(Struct, frozen=True, kw_only=True):
    """A feature, by what it adds to the server. It adds nothing to a place that it doesn't name."""

    name: str
    parts: tuple[Part, ...] = ()
    """Operations of the API, over HTTP and NATS."""
