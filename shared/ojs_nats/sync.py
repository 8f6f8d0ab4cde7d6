"""The client for code without an event loop: each method calls that of `Client`, in a loop of the package's.

What type checkers know of it stands in sync.pyi, which script/sync_stub.py makes from `Client`.
"""

from __future__ import annotations

import functools
import inspect
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from ojs_nats import _deprecated, _portal
from ojs_nats._clients import Clients
from ojs_nats._closing import SyncClosing
from ojs_nats._connect import url_of
from ojs_nats._durations import Duration
from ojs_nats._tls import check_scheme
from ojs_nats.client import Client, JobHandle
from ojs_nats.operations._subject import Subject
from ojs_nats.operations.workflows import WorkflowHandle
from ojs_nats.tls import Tls

__all__ = ["SyncClient", "SyncJobHandle", "SyncWorkflowHandle"]

R = TypeVar("R")


class _Proxy:
    """Something whose methods wait for those of another thing, which `its` returns at each call."""

    def __init__(self, its: Callable[[], Any]) -> None:
        self._its = its


class SyncClient(SyncClosing, _Proxy):
    """A client for code without an event loop; `with` closes its connections, and so does the end of the process.

    It has the methods and attributes of `Client`, without `await`; lists and events are plain iterators. Threads may
    share it, and so may forks of the process. In a running event loop it blocks everything else in that loop.

    Args:
        url: The server's address. None means OJS_URL, or http://127.0.0.1:8080.
        retry_for: For how long a call is repeated while no server answers, in seconds or as `"30s"`.
        token: The key that the server asks for. None means OJS_AUTH_TOKEN, or OJS_API_KEY.
        headers: Headers of every request.
        tls: As `Client` takes it.
        clients: The clients of an app, for `app.sync`. None makes new ones.

    Example:
        >>> client = SyncClient("http://127.0.0.1:8080", retry_for="5s")
        >>> client.close()
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        retry_for: Duration = 30.0,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        tls: Tls | ssl.SSLContext | None = None,
        clients: Clients | None = None,
    ) -> None:
        self.url = url_of(url)
        if clients is None:
            check_scheme(self.url, tls)
        made = functools.partial(Client, self.url, retry_for=retry_for, token=token, headers=headers, tls=tls)
        self._clients = clients or Clients(made)
        super().__init__(lambda: self._clients.of(_portal.loop()))

    def __getattr__(self, name: str) -> Any:
        """Return a group of operations."""
        group = None if name.startswith("_") else getattr(self._its(), name, None)
        if not isinstance(group, Subject):
            raise AttributeError(f"SyncClient has no attribute {name!r}")  # noqa: TRY004  # `hasattr` asks
        proxy = self.__dict__[name] = _kind_of(type(group))(lambda: getattr(self._its(), name))
        return proxy

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        _portal.call(self._clients.close())


class _Handle(_Proxy, Generic[R]):
    def __init__(self, handle: JobHandle[R] | WorkflowHandle[R]) -> None:
        super().__init__(lambda: handle)
        self.id = handle.id

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id})"


class SyncJobHandle(_Handle[R]):
    """A handle of a pushed job, for code without an event loop. It has the methods of `JobHandle`, without `await`."""


class SyncWorkflowHandle(_Handle[R]):
    """A handle of a started workflow, for code without an event loop. It has the methods of `WorkflowHandle`, without
    `await`.
    """


_HANDLES: dict[type[Any], type[_Handle[Any]]] = {JobHandle: SyncJobHandle, WorkflowHandle: SyncWorkflowHandle}


def _method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that waits for another one; the items of an asynchronous iterator come one by one."""
    items = str(method.__annotations__.get("return", "")).startswith("Async")

    @functools.wraps(method)
    def waiting(self: _Proxy, *args: Any, **kwargs: Any) -> Any:
        called = method(self._its(), *args, **kwargs)
        return _portal.each(called) if items else _of_handles(_portal.call(called))

    return waiting


def _of_handles(found: Any) -> Any:
    """Return what a call has returned, with the handles of this module."""
    if isinstance(found, list):
        return [_of_handles(one) for one in found]
    kind = _HANDLES.get(type(found))
    return found if kind is None else kind(found)


def _add_methods(proxy: type[_Proxy], kind: type[Any]) -> None:
    for name, method in vars(kind).items():
        if inspect.isfunction(method) and (name == "__call__" or not name.startswith("_")) and name not in vars(proxy):
            setattr(proxy, name, _method(method))


@functools.cache
def _kind_of(group: type[Subject]) -> type[_Proxy]:
    made = type(f"Sync{group.__name__}", (_Proxy,), {"__doc__": group.__doc__, "__module__": __name__})
    _add_methods(made, group)
    return made


_add_methods(SyncClient, Client)
for _asynchronous, _synchronous in _HANDLES.items():
    _add_methods(_synchronous, _asynchronous)
_deprecated.arguments(SyncClient, patience="retry_for")
