"""Jobs to push, as they are sent."""

from __future__ import annotations

from typing import Any

from ojs_nats._checks import misplaced
from ojs_nats._options import wire
from ojs_nats._plain import plain
from ojs_nats.jobs import JobRequest


def envelope(new: JobRequest[Any]) -> dict[str, Any]:
    """Return the job as a push sends it.

    Raises:
        TypeError, ValueError: As `template`.
    """
    return {"id": new.id, **template(new)}


def template(new: JobRequest[Any]) -> dict[str, Any]:
    """Return the job without its id, as workflows and cron entries send it.

    Raises:
        TypeError: JSON can't hold an argument.
        ValueError: JSON can't hold a number or text among the arguments, or the server would refuse an option.
    """
    return {"type": new.type, "args": plain(list(new.args), "args"), "options": wire(new.options)}


def check_is_job(value: Any, what: str = "what is pushed is a job, as send_email.job(…) makes it") -> None:
    """Raise TypeError if a value isn't a `JobRequest`.

    Args:
        value: The value.
        what: The beginning of the message.
    """
    if not isinstance(value, JobRequest):
        raise misplaced(value, what)
