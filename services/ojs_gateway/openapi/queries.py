"""The parameters of query strings that each operation takes (docs/adr/047)."""

from __future__ import annotations

from typing import Final

from ojs_engine.api.route import Route
from ojs_engine.base.errors import OjsError, invalid
from ojs_engine.base.fields import is_extension, shown
from ojs_engine.wire.jobs.slips import meant
from ojs_engine.wire.queries import Queries

_OF_CACHES: Final = frozenset({"_", "cb"})
"""Parameters that keep caches from answering. They are passed over, as are those of extensions."""
_MOST_CHARS: Final = 64


def checks(route: Route, method: str) -> bool:
    """Return whether the parameters of a route are checked.

    Health checks, metrics and descriptions are read by programs that add parameters of their own, without effect.
    """
    return method != "GET" or not (route.absolute or route.need == "nothing")


class KnownQueries:
    """The parameters that an operation takes."""

    def __init__(self, operation: str, route: Route) -> None:
        declared = [parameter for parameter in route.query if parameter.place == "query"]
        self._operation = operation
        self._names = tuple(parameter.name for parameter in declared)
        self._several = frozenset(parameter.name for parameter in declared if parameter.several)
        self._same = {parameter.name: parameter.same_as for parameter in declared if parameter.same_as is not None}
        self._beginnings = route.beginnings

    def check(self, queries: Queries) -> None:
        """Refuse a parameter that is unknown, or given twice where one counts. Raises invalid_request."""
        for name in queries:
            if name in self._names or name.startswith(self._beginnings):
                if name in queries.doubled and name not in self._several:
                    raise _twice(name, name)
                if (other := self._same.get(name)) in queries and other not in self._several:
                    raise _twice(name, other)
            elif name not in _OF_CACHES and not is_extension(name):
                raise self._unknown(name)

    def _unknown(self, name: str) -> OjsError:
        close = meant(name, self._names)
        question = f"; did you mean {close}?" if close is not None else ""
        taken = f"It takes {', '.join(self._names)}." if self._names else "It takes none."
        message = f"{shown(name[:_MOST_CHARS])} is not a parameter of {self._operation}{question}"
        return invalid(name[:_MOST_CHARS], message, hint=f"Leave it out. {taken}")


def _twice(name: str, other: str | None) -> OjsError:
    shown_name = name[:_MOST_CHARS]
    both = "is given twice" if name == other else f"is another name of {other}, which is given, too"
    return invalid(shown_name, f"{shown_name} {both}: leave one out")
