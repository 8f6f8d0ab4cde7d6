"""Judging a history: what was promised to clients and was not kept.

The plain rules come first, because their names say what went wrong; whatever passes them must also be explained by a
lawful life of the job (`support.lives`). Here a history is complete: the faults are over, and everything was drained.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from ojs_engine.domain.job import TERMINAL, State
from support.history import FOREVER, Call, History, Outcome, Seen
from support.lives import SLACK_S, Evidence, explained

End = Mapping[str, Any] | None
"""A job as `GET /ojs/v1/jobs/{id}` shows it at the end; None if it isn't there."""

_TAKEN_BACK = frozenset({"ack", "nack", "requeue", "cancel"})


class Violation(Struct, frozen=True):
    """A broken promise. `rule` is one of: server-error, lost, unexpected, handed-out-twice, attempt-shrank, resurrected,
    overlap, expired, stuck, unlawful.
    """

    rule: str
    job_id: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


def judge(history: History, finals: Mapping[str, End]) -> list[Violation]:
    """All violations; `finals` has an entry for every job that a push was sent for."""
    found = [
        Violation("server-error", call.job_id or "", f"{call.op} was answered {call.status}: {call}")
        for call in history.calls
        if call.status == 500
    ]
    plans = history.plans
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in history.calls:
        for job_id in {call.job_id, *(seen.job_id for seen in call.seen)} - {None}:
            calls[job_id or ""].append(call)
    lost = history.lost_fetches()
    for job_id, concerned in calls.items():
        plan = plans.get(job_id)
        if plan is None:
            found.append(Violation("unexpected", job_id, f"nobody pushed it, yet it was seen: {concerned[0]}"))
            continue
        final = finals[job_id]
        broken = [Violation(rule, job_id, what) for rule, what in _plain(concerned, job_id, final)]
        if not broken:
            fetches = [(start, end) for start, end, queues in lost if plan.queue in queues]
            views = [*(_view(call, job_id) for call in concerned), *_last_look(concerned, job_id, final)]
            if not explained(Evidence.of(plan, views, final, fetches)):
                broken = [Violation("unlawful", job_id, _story(views, final))]
        found += broken
    return found


def _view(call: Call, job_id: str) -> Call:
    """A call as far as it concerns one job."""
    return Call(
        **{name: getattr(call, name) for name in call.__struct_fields__}
        | {"job_id": job_id, "seen": tuple(seen for seen in call.seen if seen.job_id == job_id)}
    )


def _last_look(calls: Sequence[Call], job_id: str, final: End) -> list[Call]:
    """The end as one more call, after all others."""
    if final is None:
        return []
    seen = Seen(job_id, State(final["state"]), final["attempt"])
    last = max(call.started if call.outcome is Outcome.UNKNOWN else call.ended for call in calls)
    return [Call(op="get", client="judge", started=last, ended=FOREVER, outcome=Outcome.DONE, job_id=job_id, seen=(seen,))]


def _plain(calls: Sequence[Call], job_id: str, final: End) -> Iterator[tuple[str, str]]:
    pushed = [call for call in calls if call.op == "push" and _proves_existence(call)]
    if final is None:
        if pushed:
            yield "lost", f"its push was acknowledged, and it isn't there: {pushed[0]}"
        return
    if final["state"] not in TERMINAL:
        yield "stuck", f"it stays {final['state']} for ever: {final}"
    handed = sorted(
        ((call, seen) for call in calls if call.op == "fetch" for seen in _seen(call, job_id)), key=lambda pair: pair[0].started
    )
    yield from _hand_outs(calls, handed)
    yield from _resurrections(calls, job_id)
    expiry = min((call.ended + call.plan.expires_s for call in pushed if call.plan and call.plan.expires_s), default=None)
    for call, _ in handed:
        if expiry is not None and call.started > expiry + SLACK_S:
            yield "expired", f"it was handed out {call.started - expiry:.3f} s after it had expired: {call}"


def _hand_outs(calls: Sequence[Call], handed: Sequence[tuple[Call, Seen]]) -> Iterator[tuple[str, str]]:
    for (earlier, before), (later, after) in pairwise(handed):
        if earlier.ended < later.started and (before.attempt or 0) > (after.attempt or 0):
            yield "attempt-shrank", f"attempt {after.attempt} was handed out after {before.attempt}: {earlier} {later}"
    for (earlier, before), (later, after) in pairwise(sorted(handed, key=lambda pair: pair[1].attempt or 0)):
        if before.attempt == after.attempt:
            yield "handed-out-twice", f"attempt {after.attempt} went to {earlier.client} and {later.client}: {earlier} {later}"
        released = any(
            call.op in _TAKEN_BACK and call.outcome is not Outcome.REFUSED and call.started <= later.ended for call in calls
        )
        left = earlier.started + earlier.lease_s - later.ended
        if not released and left > SLACK_S:
            yield "overlap", f"{later.client} got it while {earlier.client} held it for {left:.3f} s more: {earlier} {later}"


def _resurrections(calls: Sequence[Call], job_id: str) -> Iterator[tuple[str, str]]:
    ends = [
        call
        for call in calls
        if call.outcome is Outcome.DONE
        and (call.op in {"ack", "cancel"} or any(seen.state in TERMINAL for seen in _seen(call, job_id)))
        and call.op != "heartbeat"
    ]
    if not ends:
        return
    first = min(ends, key=lambda call: call.ended)
    state = next((seen.state for seen in _seen(first, job_id)), State.CANCELLED)
    for call in calls:
        if call.started > first.ended and call.op in {"fetch", "get", "nack", "requeue", "activate"}:
            for seen in _seen(call, job_id):
                if seen.state is not state:
                    yield "resurrected", f"it was {state} and then {seen.state}: {first} {call}"


def _seen(call: Call, job_id: str) -> list[Seen]:
    return [seen for seen in call.seen if seen.job_id == job_id]


def _proves_existence(push: Call) -> bool:
    """Done, or refused because the id is taken: only this client uses it, so an earlier try of its own was stored."""
    return push.outcome is Outcome.DONE or (push.outcome is Outcome.REFUSED and push.status == 409)


def _story(calls: Sequence[Call], final: End) -> str:
    begun = min(call.started for call in calls)
    lines = ["no lawful life explains what was seen of it"]
    for call in sorted(calls, key=lambda call: call.started):
        told = " ".join(f"{seen.state}/{seen.attempt}" for seen in call.seen)
        named = f"{call.worker or '-'}/{call.attempt or '-'}"
        lines.append(
            f"  {call.started - begun:8.3f} to {call.ended - begun:8.3f}  {call.op:9} {named:12} {call.code or '':8} "
            f"{call.outcome} {call.status or ''} {told}"
        )
    lines.append(f"  in the end: {final}")
    return "\n".join(lines)
