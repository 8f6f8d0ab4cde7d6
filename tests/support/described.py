"""The server's own description (GET /ojs/v1/openapi.json), and what it says of requests and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from jsonschema_rs import Draft202012, Draft202012Validator, Registry

from support.system import Answer, send

_NAME: Final = "urn:described"
_DOCUMENT: Final = "/ojs/v1/openapi.json"

_How = Literal["open", "closed", "strict"]


class Described:
    """A document; `check` holds answers to it, `check_request` what was sent."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.operations: dict[tuple[str, str], dict[str, Any]] = {
            (method.upper(), path): operation
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        self.answered: set[tuple[str, str, int]] = set()
        """Method, path and status of what was checked."""
        self._checkers: dict[tuple[str, _How], Draft202012Validator] = {}
        self._registries: dict[_How, Registry] = {}

    @classmethod
    def by(cls, url: str) -> Described:
        """The description of the server at `url`."""
        answer = send("GET", url + _DOCUMENT)
        assert answer.status == 200, answer
        return cls(answer.body)

    def check(self, method: str, path: str, answer: Answer, *, strict: bool = False) -> None:
        """Raise unless the answer is described. It has no other members than those in its description, except, unless
        `strict`, where clients may add some.
        """
        template = self.template(path)
        if template is None or method not in self._methods(template):
            assert answer.status in {404, 405}, f"{method} {path} is not described"
            return
        responses = self.operations[method, template]["responses"]
        told = f"{method} {path} -> {answer.status}"
        described = responses.get(str(answer.status))
        assert described is not None, f"{told} is not among {sorted(responses)}: {answer.body}"
        self.answered.add((method, template, answer.status))
        if "$ref" in described:
            described = self._at(described["$ref"])
        content = described.get("content")
        if content is None:
            assert answer.body is None, told
            return
        media_type = answer.headers["Content-Type"]
        assert media_type in content, f"{told} is {media_type}"
        self._hold(told, content[media_type]["schema"], answer.body, "strict" if strict else "closed")

    def check_request(self, method: str, path: str, body: object) -> None:
        """Raise unless this may be sent."""
        template = self.template(path)
        assert template is not None, path
        content = self.operations[method, template]["requestBody"]["content"]
        self._hold(f"the body of {method} {path}", content["application/json"]["schema"], body, "open")

    def body_schema(self, method: str, template: str) -> dict[str, Any]:
        """Return the schema of an operation's body; one that admits nothing in particular where it has none."""
        content = self.operations[method, template].get("requestBody", {}).get("content", {})
        found: dict[str, Any] = content.get("application/json", {}).get("schema", {"type": "null"})
        return found

    def resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return what a part of the document refers to, or itself."""
        return self._at(node["$ref"]) if "$ref" in node else node

    def _hold(self, told: str, schema: Mapping[str, Any], value: object, how: _How) -> None:
        key = schema["$ref"], how
        checker = self._checkers.get(key)
        if checker is None:
            whole = {"$ref": f"{_NAME}{schema['$ref']}"}
            checker = Draft202012Validator(whole, validate_formats=True, registry=self._registry(how))
            self._checkers[key] = checker
        problems = [f"{error.instance_path}: {error.message[:500]}" for error in checker.iter_errors(value)]
        assert not problems, "\n".join([f"{told} is not as described ({schema['$ref']})", *problems])

    def _registry(self, how: _How) -> Registry:
        """All schemas of the document, read once."""
        if how not in self._registries:
            components = self.document["components"]
            if how != "open":
                components = _closed(components, strict=how == "strict")
            self._registries[how] = Registry([(_NAME, {"components": components})], draft=Draft202012)
        return self._registries[how]

    def _at(self, reference: str) -> dict[str, Any]:
        node: Any = self.document
        for word in reference.removeprefix("#/").split("/"):
            node = node[word]
        found: dict[str, Any] = node
        return found

    def _methods(self, template: str) -> set[str]:
        return {method.upper() for method in self.document["paths"][template]}

    def template(self, path: str) -> str | None:
        """Return the path of the description that a request's path is of."""
        plain = urlsplit(path).path
        if plain in self.document["paths"]:
            return plain
        return next((template for pattern, template in self._patterns if pattern.fullmatch(unquote(plain))), None)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        return list(self._compiled())

    def _compiled(self) -> Iterator[tuple[re.Pattern[str], str]]:
        # Literal segments go before parameters, as they do in the server.
        for template in sorted(self.document["paths"], key=lambda path: path.replace("{", "\x7f")):
            yield re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))), template


def _closed(node: Any, *, strict: bool) -> Any:
    """The schema without room for members that it doesn't name."""
    if isinstance(node, list):
        return [_closed(item, strict=strict) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {name: _closed(value, strict=strict) for name, value in node.items()}
    if "properties" in node and node.get("type") == "object" and (strict or "additionalProperties" not in node):
        closed["additionalProperties"] = False
    return closed
