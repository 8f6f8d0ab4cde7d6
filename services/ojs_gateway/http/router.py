"""Paths and methods to endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from ojs_engine.base.errors import OjsError, invalid, not_found
from ojs_gateway.http.endpoint import Endpoint

_PREFIX: Final = "/ojs/v1"
_DOUBLED: Final = "/ojs/v1/ojs/v1/"
_MOST_SHOWN: Final = 256
"""Characters of a path that an error names."""
_ANY: Final = "{}"
"""The child of a node that stands for any segment."""


class _Node:
    __slots__ = ("children", "methods", "template")

    def __init__(self) -> None:
        self.template = ""
        self.children: dict[str, _Node] = {}
        self.methods: dict[str, Endpoint] = {}


class Router:
    """Templates are paths in which `{name}` stands for one segment; literal segments go before it.

    `/v1/…` is another name for `/ojs/v1/…`, for tools that leave out the prefix. So is `/ojs/v1/ojs/v1/…`, which official SDKs
    send for checkpoints: their durable contexts have the prefix, and their transports put it in front once more.
    """

    def __init__(self, prefix: str = "") -> None:
        """`prefix` is a path that others begin with, for clients of proxies that don't take it off; empty for none."""
        self._prefix = prefix
        self._root = _Node()
        self._literal: dict[str, _Node] = {}

    def add(self, method: str, template: str, endpoint: Endpoint) -> None:
        """An endpoint of GET answers HEAD, too."""
        node = self._root
        for segment in template[1:].split("/"):
            name = _ANY if segment.startswith("{") else segment
            child = node.children.get(name)
            if child is None:
                child = node.children[name] = _Node()
            node = child
        node.template = template
        node.methods[method] = endpoint
        if method == "GET":
            node.methods["HEAD"] = endpoint
        if "{" not in template:
            self._literal[template] = node

    def routes(self) -> Iterator[tuple[str, str]]:
        """Method and template of everything that was added."""
        waiting = [self._root]
        for node in waiting:
            yield from ((method, node.template) for method in node.methods)
            waiting += node.children.values()

    def find(self, method: str, path: str) -> tuple[Endpoint, tuple[str, ...], str]:
        """Return the endpoint, the segments that names stood for, and the template.

        Raises not_found, method_not_allowed, and invalid_request for segments that aren't UTF-8.
        """
        if self._prefix and (path == self._prefix or path.startswith(f"{self._prefix}/")):
            try:
                return self._found(method, path.removeprefix(self._prefix) or "/")
            except OjsError as error:
                if error.code != "not_found":
                    raise
        return self._found(method, path)

    def _found(self, method: str, path: str) -> tuple[Endpoint, tuple[str, ...], str]:
        if path.startswith("/v1/"):
            path = "/ojs" + path
        parameters: tuple[str, ...] = ()
        node = self._literal.get(path)
        if node is None and path.startswith(_DOUBLED):
            path = path[len(_PREFIX) :]
            node = self._literal.get(path)
        if node is None:
            node, parameters = self._walk(path)
        endpoint = node.methods.get(method)
        if endpoint is None:
            allow = ", ".join(node.methods)
            shown = path[:_MOST_SHOWN]
            raise OjsError("method_not_allowed", f"{method} is not possible on {shown}, only {allow}", allow=allow)
        if parameters:
            parameters = _decoded(parameters, path, strict=not endpoint.public)  # pages have no parameters of their own
        return endpoint, parameters, node.template

    def _walk(self, path: str) -> tuple[_Node, tuple[str, ...]]:
        node: _Node | None = self._root
        parameters: list[str] = []
        for segment in path[1:].split("/"):
            assert node is not None
            literal = node.children.get(segment)
            if literal is None:
                literal = node.children.get(_ANY) if segment else None
                parameters.append(segment)
            node = literal
            if node is None:
                break
        if node is None or not node.methods:
            raise no_path(path)
        return node, tuple(parameters)


def _decoded(segments: tuple[str, ...], path: str, *, strict: bool) -> tuple[str, ...]:
    try:
        return tuple([unquote(segment, errors="strict" if strict else "replace") for segment in segments])
    except UnicodeDecodeError:
        raise invalid("path", f"the path {path[:_MOST_SHOWN]} is not valid UTF-8 once it is decoded") from None


def no_path(path: str) -> OjsError:
    """Return the error of a path that nothing is at; what lies outside of the API's says where that is."""
    error = not_found("path", path[:_MOST_SHOWN])
    if path.startswith("/ojs/"):
        return error
    return OjsError(error.code, f"{error.message}; the API is at {_PREFIX}", hint=error.hint, details=error.details)
