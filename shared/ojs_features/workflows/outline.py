"""Reading one workflow's own members: which kind it is, its steps, what they depend on and who is called back.

Typed: `{"type": "chain", "steps": […]}`, `{"type": "group", "jobs": […]}`, `{"type": "batch", "jobs": […],
"callbacks": {…}}`. The admin UI's builder says `tasks` for `jobs`, and writes `on_complete` beside them in place of
`callbacks`. Untyped: `{"steps": [{"id", "type", "args", "depends_on"}]}`, as ojs-http-binding §14 and the SDKs have
it. There callbacks are steps: the Python SDK marks them by `options.callback_type`, the Go SDK by their ids alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn, cast

import msgspec
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import absent, is_extension, items_of, members_of, short_text, shown, value_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_features.workflows.graph import CALLBACKS, NodeKind, Role

_TYPED: Final[dict[str, tuple[NodeKind, tuple[str, ...]]]] = {
    "chain": ("chain", ("steps", "jobs", "tasks")),
    "group": ("group", ("jobs", "steps", "tasks")),
    "batch": ("batch", ("jobs", "steps", "tasks")),
}
_GO_IDS: Final[dict[str, Role]] = {"on-complete": "on_complete", "on-success": "on_success", "on-failure": "on_failure"}


class Item(NamedTuple):
    """One step: its undecoded members without those that are about its place, and where it stands in the request."""

    path: str
    members: dict[str, Raw]
    id: str | None


class Outline(NamedTuple):
    """One workflow with its steps, callbacks last; `needs` by position, only for a DAG."""

    kind: NodeKind
    items: list[Item]
    roles: tuple[Role, ...]
    ids: tuple[str, ...]
    needs: tuple[tuple[int, ...], ...]


def invalid_workflow(path: str, message: str, *, canonical: str | None = None) -> OjsError:
    """400 for one place of a workflow; `path` begins with `$` (ojs-workflows §11.1)."""
    details = {"field": path, "validation_errors": [{"path": path, "message": message}]}
    return OjsError("invalid_workflow", f"{path}: {message}", details=details, canonical=canonical)


def is_workflow(members: dict[str, Raw]) -> bool:
    """Return whether a step is a workflow itself. Its members say so, since a job may be of a type called chain."""
    return "args" not in members and ("steps" in members or "jobs" in members or "callbacks" in members)


def outline(members: dict[str, Raw], path: str, limits: PayloadLimits) -> Outline:
    """Divide one workflow into its steps. Its own members are checked, the steps are not.

    Raises invalid_workflow.
    """
    kind = None if absent(members.get("type", Raw())) else value_of(members["type"], f"{path}.type", limits)
    if kind is None or kind == "dag":
        return _untyped(_items(members, ("steps", "jobs"), path, limits), path, limits)
    if type(kind) is not str or kind not in _TYPED:
        raise invalid_workflow(
            f"{path}.type",
            f"must be chain, group or batch, or left out for steps with depends_on, not {shown(kind)}",
        )
    typed, names = _TYPED[kind]
    items = _items(members, names, path, limits)
    for item in items:
        if not absent(item.members.pop("depends_on", Raw())):
            raise invalid_workflow(f"{item.path}.depends_on", f"a {kind} has its own order; leave type out to use depends_on")
    roles: tuple[Role, ...] = ()
    if typed == "batch":
        callbacks = _callbacks(members, path)
        items += [item for _, item in callbacks]
        roles = tuple(role for role, _ in callbacks)
    elif not absent(members.get("callbacks", Raw())):
        raise invalid_workflow(f"{path}.callbacks", f"only a batch has callbacks, not a {kind}")
    ids: tuple[str, ...] = ()
    if any(item.id is not None for item in items):
        ids = _ids(items, roles)
        _unique(ids, items)
    return Outline(typed, items, roles, ids, ())


def _items(members: dict[str, Raw], names: tuple[str, ...], path: str, limits: PayloadLimits) -> list[Item]:
    name = next((name for name in names if not absent(members.get(name, Raw()))), None)
    if name is None:
        raise invalid_workflow(f"{path}.{names[0]}", "is required: a list of at least one step")
    place = f"{path}.{name}"
    try:
        raws = items_of(members[name], place, limits.max_workflow_jobs)
    except OjsError:
        raise invalid_workflow(place, "must be a list of objects") from None
    if not raws:
        raise invalid_workflow(place, "must contain at least one element")
    if len(raws) > limits.max_workflow_jobs:
        raise _too_many(place, len(raws), limits)
    return [_item(raw, f"{place}[{index}]", limits) for index, raw in enumerate(raws)]


def _item(raw: Raw, path: str, limits: PayloadLimits) -> Item:
    members = object_at(raw, path)
    step_id = members.pop("id", Raw())
    if absent(step_id):
        return Item(path, members, None)
    value = value_of(step_id, f"{path}.id", limits)
    try:
        return Item(path, members, short_text(value, f"{path}.id", limits))
    except OjsError as error:
        raise invalid_workflow(f"{path}.id", error.message.removeprefix(f"{path}.id ")) from None


def _callbacks(members: dict[str, Raw], path: str) -> list[tuple[Role, Item]]:
    place = f"{path}.callbacks"
    raw = members.get("callbacks", Raw())
    given: dict[str, Raw] = {}
    if absent(raw):
        place = path
        given |= {role: members[role] for role in CALLBACKS if role in members}
    else:
        given |= object_at(raw, place)
    found: list[tuple[Role, Item]] = []
    for name in given:
        if name not in CALLBACKS and not is_extension(name):
            raise invalid_workflow(f"{place}.{name}"[:200], f"there is no such callback; there are {', '.join(CALLBACKS)}")
    for role in CALLBACKS:
        callback = given.get(role, Raw())
        if not absent(callback):
            body = object_at(callback, f"{place}.{role}")
            body.pop("id", None)
            body.pop("depends_on", None)
            found.append((role, Item(f"{place}.{role}", body, role)))
    if not found:
        raise invalid_workflow(f"{path}.callbacks", f"a batch needs at least one of {', '.join(CALLBACKS)}")
    return found


# Steps with depends_on


def _untyped(items: list[Item], path: str, limits: PayloadLimits) -> Outline:
    given_ids = [item.id if item.id is not None else str(index) for index, item in enumerate(items)]
    positions = _unique(given_ids, items)
    needs = [_needs(item, positions, limits) for item in items]
    roles = [_role_of(item, limits) for item in items]
    others = {position for position, role in enumerate(roles) if role is None and items[position].id not in _GO_IDS}
    for go_id, role in _GO_IDS.items():  # the Go SDK's way: an id, and everything else ahead of it
        position = positions.get(go_id, -1)
        if position >= 0 and roles[position] is None and others and set(needs[position]) == others:
            roles[position] = role
    plain = [position for position, role in enumerate(roles) if role is None]
    if not plain:
        raise invalid_workflow(path, "there are only callbacks; at least one step must not be one")
    called = sorted((p for p, role in enumerate(roles) if role is not None), key=lambda p: CALLBACKS.index(_sure(roles[p])))
    everyone = tuple(plain)
    for position in called:
        needs[position] = needs[position] or everyone
    if (number := sum(map(len, needs))) > limits.max_workflow_dependencies:
        most = f"{limits.max_workflow_dependencies:,}"
        raise invalid_workflow(path, f"the steps, callbacks included, depend on others {number:,} times; the limit is {most}")
    _check_cycles(items, needs)
    order = plain + called
    place = {old: new for new, old in enumerate(order)}
    items = [items[old] for old in order]
    ordered = tuple(tuple(place[need] for need in needs[old]) for old in order)
    ids = tuple(given_ids[old] for old in order)
    named = tuple(_sure(roles[old]) for old in called)
    kind = _kind(ordered, len(plain))
    return Outline(kind, items, named, ids, ordered if kind == "dag" else ())


def _kind(needs: tuple[tuple[int, ...], ...], members: int) -> NodeKind:
    """Return the kind that the dependencies make; the simple kinds need no list of them."""
    free = not any(needs[:members])
    called = needs[members:]
    if not called:
        if all(need == ((position - 1,) if position else ()) for position, need in enumerate(needs)):
            return "chain"
        return "group" if free else "dag"
    everyone = set(range(members))
    return "batch" if free and all(set(need) == everyone for need in called) else "dag"


def _needs(item: Item, positions: dict[str, int], limits: PayloadLimits) -> tuple[int, ...]:
    raw = item.members.pop("depends_on", Raw())
    if absent(raw):
        return ()
    place = f"{item.path}.depends_on"
    value = value_of(raw, place, limits)
    if type(value) is not list or len(value) > limits.max_workflow_jobs:
        raise invalid_workflow(place, "must be a list of step ids")
    found: dict[int, None] = {}
    for index, name in enumerate(value):
        if type(name) is not str or name not in positions:
            raise invalid_workflow(f"{place}[{index}]", f"there is no step with the id {shown(name)}")
        found[positions[name]] = None
    return tuple(found)


def _role_of(item: Item, limits: PayloadLimits) -> Role | None:
    """The Python SDK's mark, taken out of the step's options."""
    place = f"{item.path}.callback_type"
    raw = item.members.pop("callback_type", Raw())
    options = item.members.get("options", Raw())
    if not absent(options):
        members = object_at(options, f"{item.path}.options")
        if "callback_type" in members:
            place = f"{item.path}.options.callback_type"
            raw = members.pop("callback_type")
            item.members["options"] = Raw(msgspec.json.encode(members))
    if absent(raw):
        return None
    value = value_of(raw, place, limits)
    if value not in CALLBACKS:
        raise invalid_workflow(place, f"must be one of {', '.join(CALLBACKS)}, not {shown(value)}")
    return cast("Role", value)


def _check_cycles(items: list[Item], needs: list[tuple[int, ...]]) -> None:
    waits = [len(set(need)) for need in needs]
    behind: list[list[int]] = [[] for _ in items]
    for position, need in enumerate(needs):
        for one in set(need):
            behind[one].append(position)
    ready = [position for position, number in enumerate(waits) if not number]
    seen = 0
    while ready:
        seen += 1
        for position in behind[ready.pop()]:
            waits[position] -= 1
            if not waits[position]:
                ready.append(position)
    if seen < len(items):
        _name_cycle(items, needs, {position for position, number in enumerate(waits) if number})


def _name_cycle(items: list[Item], needs: list[tuple[int, ...]], stuck: set[int]) -> NoReturn:
    walk: dict[int, None] = {}
    position = min(stuck)
    while position not in walk:
        walk[position] = None
        position = next(need for need in needs[position] if need in stuck)
    names = [items[one].id or str(one) for one in walk][list(walk).index(position) :]
    shown_names = " -> ".join([*names[:10], *(["…"] if len(names) > 10 else []), names[0]])
    raise invalid_workflow(
        f"{items[position].path}.depends_on",
        f"the steps depend on each other in a circle: {shown_names}",
        canonical="CYCLIC_DEPENDENCY",
    )


def _unique(ids: list[str] | tuple[str, ...], items: list[Item]) -> dict[str, int]:
    positions: dict[str, int] = {}
    for position, name in enumerate(ids):
        if name in positions:
            raise invalid_workflow(
                f"{items[position].path}.id", f"the id {shown(name)} is taken by {items[positions[name]].path}"
            )
        positions[name] = position
    return positions


def _ids(items: list[Item], roles: tuple[Role, ...]) -> tuple[str, ...]:
    members = len(items) - len(roles)
    return tuple(item.id if item.id is not None else str(index) for index, item in enumerate(items[:members])) + roles


def _sure(role: Role | None) -> Role:
    assert role is not None
    return role


def object_at(raw: Raw, path: str) -> dict[str, Raw]:
    """The members of a part of a definition, undecoded. Raises invalid_workflow."""
    try:
        return members_of(raw, path)
    except OjsError:
        raise invalid_workflow(path, "must be an object") from None


def _too_many(path: str, number: int, limits: PayloadLimits) -> OjsError:
    return invalid_workflow(path, f"has {number} elements; the limit is {limits.max_workflow_jobs} jobs in one workflow")
