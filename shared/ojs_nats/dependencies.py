"""Dependencies: objects that a handler is given besides its job's arguments, made for each job and cleaned up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar, overload

from ojs_nats._dependencies import Dependency

__all__ = ["Depends"]

T = TypeVar("T")


@overload
def Depends(provider: Callable[..., AsyncIterator[T]]) -> T: ...
@overload
def Depends(provider: Callable[..., Iterator[T]]) -> T: ...
@overload
def Depends(provider: Callable[..., Awaitable[T]]) -> T: ...
@overload
def Depends(provider: Callable[..., T]) -> T: ...
def Depends(provider: Callable[..., Any]) -> Any:  # noqa: N802  # as in FastAPI
    """Declare a parameter behind `*` as a dependency: `provider` makes its value for each job.

    A provider that several parameters need is called once for a job. Plain providers run in a thread. Context variables
    that a provider sets reach the handler.

    Args:
        provider: A function, an async function, a generator or async generator that cleans up behind its `yield` (an
            exception of the handler is raised there), or an object or class that is called as one. Its own parameters
            may be dependencies, and one that is hinted `JobContext`.

    Raises:
        TypeError: The provider has other parameters.

    Example:
        >>> from ojs_nats import App, Depends
        >>> def settings():
        ...     return {"sender": "shop@example.org"}
        >>> app = App()
        >>> @app.job("email.send")
        ... def send_email(to: str, *, options: dict = Depends(settings)) -> None: ...
        >>> send_email.job("ada@example.org").args
        ('ada@example.org',)
    """
    return Dependency(provider)
