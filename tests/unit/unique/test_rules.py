from __future__ import annotations

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import UniquePolicy, keyed, parse_policy
from ojs_features.unique.rules import counts
from support.tables import each

NOW = 1_770_000_000_000
LIVE = frozenset({State.AVAILABLE, State.ACTIVE, State.SCHEDULED, State.RETRYABLE, State.PENDING})


def policy(**sent: object) -> UniquePolicy:
    return parse_policy(sent, "unique", PayloadLimits())


def job(state: State = State.AVAILABLE) -> Job:
    sent = Raw(msgspec.json.encode({"keys": ["type"]}))
    return keyed(Job(id="x", type="email.send", args=Raw(b"[]"), state=state, created_at=NOW, unique=sent))


@each("state", State)
def test_only_the_listed_states_count(state: State) -> None:
    existing = job(state)
    assert existing.unique_key is not None
    assert counts(policy(), existing.unique_key, existing, NOW) is (state in LIVE)
    assert counts(policy(states=[state.value]), existing.unique_key, existing, NOW)


def test_the_period_counts_from_the_existing_job_and_its_end_is_free() -> None:
    existing = job()
    assert existing.unique_key is not None
    limited = policy(period="PT10S")
    assert counts(limited, existing.unique_key, existing, NOW + 9_999)
    assert not counts(limited, existing.unique_key, existing, NOW + 10_000)


def test_a_tombstone_and_a_job_of_another_fingerprint_do_not_count() -> None:
    existing = job()
    assert existing.unique_key is not None
    assert not counts(policy(), existing.unique_key, replace(existing, deleted=True), NOW)
    assert not counts(policy(), "other", existing, NOW)
