"""Writes services/ojs_dashboard/types/openapi.d.ts, what the dashboard knows of the API, from its OpenAPI description, and
static/words.js, the words that it shares with the server and with clients: a job's members from their table, and enumerations.

`.venv/bin/python script/dashboard_types.py`; with `--check` it writes nothing, and fails if the file isn't as it would be.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

ROOT: Final = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "services"), str(ROOT / "shared")]

from ojs_api import words  # noqa: E402
from ojs_engine.domain.members import FOUND_BY, MEMBERS, OF_SERVER  # noqa: E402  # the path is set above
from script.pages.endpoints import own_description  # noqa: E402  # the path is set above

WORDS: Final = ROOT / "services" / "ojs_dashboard" / "static" / "words.js"
WRITTEN: Final = ROOT / "services" / "ojs_dashboard" / "types" / "openapi.d.ts"
BASE: Final = "/ojs/v1"
HEAD: Final = """// Made by script/dashboard_types.py from the description of the API; don't change it by hand.

/** A member of a query string; those without a value are left out. */
export type Value = string | number | boolean | null | undefined;

/** A body as it is made of what somebody typed: texts may be any, and what isn't there is left out. */
export type Sent<T> = T extends string
	? string
	: T extends Array<infer Item>
		? ReadonlyArray<Sent<Item>>
		: T extends object
			? { [Name in keyof T]: Sent<T[Name]> | undefined }
			: T;
"""

Schema = dict[str, Any]


def main() -> None:
    for path, made in ((WRITTEN, "\n".join([HEAD, *declarations(own_description())])), (WORDS, shared_words())):
        if "--check" not in sys.argv:
            path.write_text(made, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != made:
            sys.exit(f"{path.relative_to(ROOT)} isn't current: run script/dashboard_types.py")


def shared_words() -> str:
    """Return the module that says what of a job is whose, and which words there are."""
    lists = {
        "FOUND_BY": [by.name for by in FOUND_BY],
        "OF_SERVER": sorted(OF_SERVER),
        "OPTIONS": [member.name for member in MEMBERS if member.option and member.shown == "always"],
        "JOB_STATES": get_args(words.JobState),
        "OVERLAPS": get_args(words.Overlap),
        "ROLES": [role for role in get_args(words.Role) if role != "custom"],
        "WORKFLOW_STATES": get_args(words.WorkflowState),
        "TEXTS": [member.name for member in MEMBERS if member.kind is not None],
    }
    head = "// Made by script/dashboard_types.py from ojs_engine.domain.members and ojs_api.words; don't change it by hand."
    return "\n".join([head, *(f"export const {name} = {json.dumps(names)};" for name, names in lists.items()), ""])


def declarations(described: Schema) -> Iterator[str]:
    """A type for each schema, and for each operation its permission, its query, its body and its answer."""
    for name, schema in described["components"]["schemas"].items():
        yield f"export type {name} = {typed(schema)};\n"
    yield "export interface Operations {"
    for path, methods in described["paths"].items():
        if path.startswith(BASE):
            for method, operation in methods.items():
                yield f"\t'{method.upper()} {path.removeprefix(BASE)}': {of_operation(operation)};"
    yield "}\n"


def of_operation(operation: Schema) -> str:
    query = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    answers = dict.fromkeys(content_of(one) or "null" for status, one in operation["responses"].items() if status[0] == "2")
    members = {
        "permission": json.dumps(operation.get("x-permission", "nothing")),
        "query": "{ " + "".join(f"{member(name)}?: Value; " for name in query) + "}",
        "body": content_of(operation.get("requestBody", {})) or "undefined",
        "answer": " | ".join(answers) or "null",
    }
    return "{ " + "; ".join(f"{name}: {kind}" for name, kind in members.items()) + " }"


def content_of(described: Schema) -> str | None:
    """The type of a body in JSON; None where there is none."""
    found = described.get("content", {}).get("application/json")
    return typed(found["schema"]) if found else None


def typed(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value) for value in values)
        case {"const": value}:
            return json.dumps(value)
        case {"anyOf": list(kinds)}:
            return " | ".join(dict.fromkeys(bracketed(kind) for kind in kinds))
        case {"allOf": list(kinds)}:
            return " & ".join(bracketed(kind) for kind in kinds)
        case {"type": list(kinds)}:
            return " | ".join(typed(schema | {"type": kind}) for kind in kinds)
        case {"type": "array"}:
            return f"Array<{typed(schema.get('items', {}))}>"
        case {"type": "object"}:
            return of_object(schema)
        case {"type": str(kind)}:
            return {"integer": "number", "number": "number", "string": "string", "boolean": "boolean", "null": "null"}[kind]
        case _:
            return "unknown"


def bracketed(schema: Schema) -> str:
    found = typed(schema)
    return f"({found})" if "|" in found and not found.startswith("{") else found


def of_object(schema: Schema) -> str:
    needed = set(schema.get("required", ()))
    named = "; ".join(
        f"{member(name)}{'' if name in needed else '?'}: {typed(kind)}" for name, kind in schema.get("properties", {}).items()
    )
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and not named:
        return f"Record<string, {typed(others)}>"
    return f"{{ {named} }}" if named else "Record<string, unknown>"


def member(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)


if __name__ == "__main__":
    main()
