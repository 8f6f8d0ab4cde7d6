"""Operations: what each asks of its caller, where it is, and what goes in and out."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct

Permission = Literal["enqueue", "work", "read", "payloads", "control", "configure", "destroy", "admin"]
PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
Need = Permission | Literal["nothing", "key"]
"""What an operation asks of its caller: a permission, any key at all (`key`), or nothing, so that it is open to everybody."""
Narrowing = Literal["body", "queue", "parameter", "job", "entry", "worker", "refused"]
"""How an operation is held to the queues and job types that its caller may reach.

By what its `body` names; by the `queue` of its path; by the `parameter` or member `queue`, and `type` where the
caller is narrowed by types; by the `job` or jobs that it names, which count as absent; by each `entry` of its answer;
by the `worker` that the caller's key has registered. What doesn't say so is `refused`.
"""


PUSH_REFUSALS: Final = (
    "invalid_retry_policy",
    "job_type_too_long",
    "queue_name_too_long",
    "metadata_too_large",
    "job_type_not_allowed",
    "job_type_not_registered",
    "unknown_attributes",
    "schema_validation",
    "duplicate",
    "queue_full",
    "queue_paused",
    "queue_draining",
    "storage_full",
)
"""What a job in a request may be refused with."""


class Parameter(Struct, frozen=True):
    """A member of the query string, or a header with `place`. `kind` is its type, with its bounds."""

    name: str
    kind: Any
    about: str = ""
    same_as: str | None = None
    """The parameter that it is another name of: only one of both may be given."""
    place: Literal["query", "header"] = "query"
    several: bool = False
    """Whether all count that are given."""


def query_of(kind: type) -> tuple[Parameter, ...]:
    """Return the members of a `TypedDict` as parameters of a query string. Any of them may be left out."""
    return tuple(_parameter(name, hint) for name, hint in get_type_hints(kind, include_extras=True).items())


def _parameter(name: str, hint: Any) -> Parameter:
    [kind] = (each for each in get_args(hint) if each is not NoneType)
    if get_origin(kind) is not Annotated:
        return Parameter(name, kind)
    bare, *notes = get_args(kind)
    about = next((note.description for note in notes if note.description), "")
    bounds = [note for note in notes if not note.description]
    return Parameter(name, Annotated[bare, *bounds] if bounds else bare, about)


IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    Annotated[str, Meta(max_length=256)],
    "A request with the key of an earlier one gets that one's answer.",
    place="header",
)


class Other(Struct, frozen=True):
    """An answer that isn't JSON: its media type, none if there is no body."""

    media_type: str | None
    about: str


class Operation(Struct, frozen=True, eq=False):
    """An operation. Its `name` is the operationId, by which it is asked for over NATS.

    It is `at` a place, `METHOD /path`, below /ojs/v1 unless it begins with /ojs/; `also` are further names of it.
    `errors` are codes of refusals, besides those that any request may meet.
    """

    name: str
    at: str
    need: Need
    summary: str
    answers: Mapping[int, type[Struct] | Other]
    about: str = ""
    also: tuple[str, ...] = ()
    body: type[Struct] | None = None
    query: tuple[Parameter, ...] = ()
    beginnings: tuple[str, ...] = ()
    """Beginnings of names of further parameters, which its clients choose."""
    errors: tuple[str, ...] = ()
    narrowing: Narrowing = "refused"
    by_queue: bool = False
    """Whether it may be asked for over NATS in the name of one queue."""
    http_only: bool = False
    """Whether it means nothing over NATS."""
    besides: tuple[Permission, ...] = ()
    """Permissions that it takes besides `need`, by what it makes happen later."""

    @property
    def method(self) -> str:
        """The method of its own place."""
        return self.at.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of its own place, as it is written."""
        return self.at.partition(" ")[2]

    @property
    def place(self) -> str:
        """The whole path."""
        return self.path if self.path.startswith("/ojs/") else f"/ojs/v1{self.path}"


class Subject(Struct, frozen=True, eq=False):
    """Operations that belong together."""

    name: str
    about: str
    operations: tuple[Operation, ...]
    in_paths: tuple[Parameter, ...] = ()
    """The names in paths that stand for what it is about."""
