"""The operations of the server, by their names in the API's description, and a request for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from ojs_api.operations import Operation as ContractOperation


class Operation(NamedTuple):
    """One that the contract doesn't have yet. `name` is its operationId, by which it is asked for over NATS. `path` is where
    it is over HTTP: below /ojs/v1, unless it begins with /ojs/.
    """

    name: str
    method: str
    path: str

    @property
    def place(self) -> str:
        """The whole path."""
        return self.path if self.path.startswith("/ojs/") else f"/ojs/v1{self.path}"


AnyOperation = Operation | ContractOperation


class Request(msgspec.Struct, frozen=True):
    """`parameters` are those of the path, by the names that it has them by, and of the query. `queue` is the one that all of it
    is about, if it is about one: over NATS, permissions go by it. A request that isn't `repeatable` is sent again only when the
    one before can't have been carried out. An answer is waited for as long as `answer_s`; None is for
    what is answered at once, and as long as suits the way there. Some operations answer with statuses of errors, too, which are
    `answered_as_well`, unless an error comes with them.
    """

    operation: AnyOperation
    parameters: Mapping[str, str] = {}
    body: Any = None
    queue: str | None = None
    headers: Mapping[str, str] = {}
    repeatable: bool = True
    answer_s: float | None = None
    answered_as_well: frozenset[int] = frozenset()


PUSH: Final = Operation("createJob", "POST", "/jobs")
