"""The gateway's description of its own API."""

from __future__ import annotations

from ojs_gateway.openapi.document import document, places
from ojs_gateway.openapi.route import Handler, Other, Parameter, Part, Route

__all__ = ["Handler", "Other", "Parameter", "Part", "Route", "document", "places"]
