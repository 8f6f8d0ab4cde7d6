"""Jobs: `JobRequest` is one to push, `Job` is one that the server has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

import msgspec

from ojs_api.jobs import Checkpoint, Job, JobError, JobRetry
from ojs_nats import _deprecated
from ojs_nats._checks import check_args, misplaced
from ojs_nats._ids import new_id
from ojs_nats._names import job_type
from ojs_nats._options import checked, merged
from ojs_nats.options import DEFAULT_QUEUE, Options

if TYPE_CHECKING:
    import typing_extensions

    R_co = typing_extensions.TypeVar("R_co", covariant=True, default=Any)  # of a job that no definition made
else:
    R_co = TypeVar("R_co", covariant=True)

__all__ = ["Checkpoint", "Job", "JobError", "JobRequest", "JobRetry"]


class JobRequest(msgspec.Struct, Generic[R_co], frozen=True):
    """A job to push. A definition makes one: `send_email.job("ada@example.org")`.

    The id is made here, so that an unanswered push can be repeated. Pushing the same `JobRequest` twice, also
    with other options, makes one job.

    Args:
        type: The job type. `"report.build@2"` asks for version 2.
        args: The arguments, in order. JSON has to be able to hold them.
        options: The options of the job.
        id: A UUIDv7. By default a new one.
        returns: The type that `handle.result()` converts the result to.

    Raises:
        TypeError: The type isn't a text, the arguments aren't a sequence, or an option doesn't exist or is of another
            kind.
        ValueError: The type isn't a valid name, or the server would refuse an option.

    Example:
        >>> JobRequest("email.send", ("ada@example.org",), {"queue": "email"}).queue
        'email'
    """

    type: str
    args: tuple[Any, ...] = ()
    options: Options = {}
    id: str = msgspec.field(default_factory=new_id)
    returns: Any = Any

    def __post_init__(self) -> None:
        """Check the type, the arguments and the options."""
        if not isinstance(self.type, str):
            raise misplaced(self.type, "a new job begins with the name of its type")
        job_type(self.type)
        check_args(self.args)
        if self.options:
            msgspec.structs.force_setattr(self, "options", checked(self.options, f"JobRequest {self.type!r}"))

    @property
    def queue(self) -> str:
        """The queue that the job goes to."""
        return self.options.get("queue", DEFAULT_QUEUE)

    def with_options(self, **options: Unpack[Options]) -> JobRequest[R_co]:
        """Return the same job, under the same id, with other options.

        Args:
            **options: Any of `ojs_nats.options.Options`. Each replaces the one that the job had.

        Raises:
            TypeError: There is no such option, or the value is of another kind.
            ValueError: The server would refuse the value.
        """
        return msgspec.structs.replace(self, options=merged(self.options, options, f"{self.type}.with_options"))


_deprecated.methods(JobRequest, using="with_options")
