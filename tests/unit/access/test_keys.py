from __future__ import annotations

import pytest
from msgspec.structs import replace

from ojs_engine.access.admission import ENVIRONMENT, Admission, key_id_of
from ojs_engine.access.permissions import PERMISSIONS, ROLES
from ojs_engine.base.errors import OjsError
from ojs_features.access.keys import Key, NewKey, make_key, renewed
from ojs_features.access.known_keys import KnownKeys
from ojs_features.access.sessions import MOST_ENDED, with_ended
from ojs_features.access.slowing import Slowing
from support.tables import each

NOW = 1_770_000_000_000


class Time:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = NOW

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def time() -> Time:
    return Time()


def knowing(time: Time, *keys: Key, token: str | None = None) -> KnownKeys:
    known = KnownKeys(time, token)
    known.replace(keys)
    return known


def refusal(known: KnownKeys, header: str) -> str:
    with pytest.raises(OjsError) as error:
        known.check_header(header)
    assert (error.value.code, error.value.info.status) == ("unauthenticated", 401)
    assert ("WWW-Authenticate", "Bearer") in error.value.headers
    return error.value.message


def test_a_key_is_stored_without_its_secret_and_lets_its_token_in_alone(time: Time) -> None:
    new = make_key("shop", "producer")
    assert new.token.startswith(f"ojs_sk_{new.key.id}_")
    assert len(new.token.rpartition("_")[2]) == 64
    assert new.token.rpartition("_")[2] not in str(new.key)
    known = knowing(time, new.key)
    assert known.check_header(f"Bearer {new.token}").principal == new.key.principal
    assert known.check_header(f"bearer   {new.token} ").principal.name == "shop"
    wrong = new.token[:-1] + ("0" if new.token[-1] != "0" else "1")
    other = make_key("shop", "producer").token
    bare = ("", f"{new.token} x", "é", "\udcff", wrong, other)
    for header in ("Bearer", f"Basic {new.token}", *(f"Bearer {text}" for text in bare)):
        message = refusal(known, header)
        assert new.token not in message
        assert known.of_header(header) is None


def test_what_was_right_once_is_looked_up_until_its_key_ends(time: Time) -> None:
    new = make_key("shop", "viewer", expires_at=NOW + 1_000)
    known = knowing(time, new.key)
    header = f"Bearer {new.token}"
    assert known.of_header(header) is None
    admission = known.check_header(header)
    assert known.of_header(header) is admission
    time.at += 1_000
    assert known.of_header(header) is None
    assert refusal(known, header) == "key 'shop' has expired"


def test_revoking_a_key_drops_what_is_remembered_of_it_and_tells_those_under_way(time: Time) -> None:
    first, second = make_key("first", "admin"), make_key("second", "admin")
    known = knowing(time, first.key, second.key)
    one, two = (known.check_header(f"Bearer {new.token}") for new in (first, second))
    session = known.session(first.key.principal)
    assert session is not None
    signed_in = known.check_cookie(session[0])
    known.replace([replace(first.key, revoked_at=NOW, op="o1"), replace(second.key, used_at=NOW, op="o2")])
    assert (one.over, signed_in.over, two.over) == (True, True, False)
    assert known.of_header(f"Bearer {second.token}") is two
    assert known.of_cookie(session[0]) is None
    assert "was revoked" in refusal(known, f"Bearer {first.token}")
    with pytest.raises(OjsError, match="was revoked"):
        known.check_cookie(session[0])


def test_who_shows_a_key_in_many_ways_still_hears_of_its_end(time: Time) -> None:
    """What is looked up is limited, and forgotten when it is too much; a stream goes on meanwhile."""
    new = make_key("shop", "viewer")
    known = knowing(time, new.key)
    under_way = known.check_header(f"Bearer {new.token}")
    for spaces in range(2, 3_900):
        known.check_header("Bearer" + " " * spaces + new.token)
        known.check_header("bearer" + " " * spaces + new.token)
    assert known.of_header(f"Bearer {new.token}") is None
    known.replace([replace(new.key, revoked_at=NOW)])
    assert under_way.over


def test_those_under_way_are_told_when_their_key_expires(time: Time) -> None:
    new = make_key("shop", "viewer", expires_at=NOW + 1_000)
    known = knowing(time, new.key)
    admission = known.check_header(f"Bearer {new.token}")
    known.look()
    assert not admission.over
    time.at += 1_000
    known.look()
    assert admission.over


@pytest.mark.parametrize("shown_before", [True, False])
def test_a_key_that_is_rotated_ends_what_it_let_in_after_the_overlap(time: Time, shown_before: bool) -> None:
    """That is, sessions that began before as well."""
    new = make_key("person", "admin")
    known = knowing(time, new.key)
    made = known.session(new.key.principal)
    assert made is not None
    header = f"Bearer {new.token}"

    def let_in() -> tuple[Admission, Admission]:
        return known.of_header(header) or known.check_header(header), known.of_cookie(made[0]) or known.check_cookie(made[0])

    before = let_in() if shown_before else None
    known.replace([replace(new.key, expires_at=NOW + 60_000, replaced_by="other", op="o1")])
    admissions = let_in()
    assert before in {None, admissions}
    assert {(one.until, one.over) for one in admissions} == {(NOW + 60_000, False)}
    time.at += 60_000
    known.look()
    assert [one.over for one in admissions] == [True, True]
    assert known.of_cookie(made[0]) is None
    with pytest.raises(OjsError, match="has expired"):
        known.check_cookie(made[0])


def test_a_session_is_of_its_key_and_ends_by_itself(time: Time) -> None:
    first, second = make_key("first", "admin"), make_key("second", "viewer")
    known = knowing(time, first.key, second.key)
    made = known.session(first.key.principal)
    assert made is not None
    text, ends_at_s = made
    assert ends_at_s * 1_000 == NOW + 12 * 3_600_000
    assert known.check_cookie(text).principal.name == "first"
    key_id, end, seal = text.split(".")
    for forged in (
        f"{second.key.id}.{end}.{seal}",
        f"{key_id}.{int(end) + 1}.{seal}",
        f"{key_id}.{end}.{seal[:-1]}",
        f"{key_id}.{end}",
        f"nobody.{end}.{seal}",
        f"{key_id}.x.{seal}",
        "",
        "é" * 10_000,
    ):
        with pytest.raises(OjsError, match="none of this server's"):
            known.check_cookie(forged)
    time.at = ends_at_s * 1_000
    assert known.of_cookie(text) is None
    with pytest.raises(OjsError, match="over"):
        known.check_cookie(text)


def test_a_session_ends_no_later_than_its_key(time: Time) -> None:
    new = make_key("first", "admin", expires_at=NOW + 60_000)
    made = knowing(time, new.key).session(new.key.principal)
    assert made is not None
    assert made[1] * 1_000 == NOW + 60_000


def test_the_key_of_the_environment_lets_in_beside_stored_ones(time: Time) -> None:
    new = make_key("shop", "producer")
    known = knowing(time, new.key, token="s3cret")
    assert known.check_header("Bearer s3cret").principal.id == ENVIRONMENT
    assert known.check_header("Bearer s3cret").principal.permissions == frozenset(PERMISSIONS)
    assert known.check_header(f"Bearer {new.token}").principal.name == "shop"
    refusal(known, "Bearer s3crets")
    shaped = make_key("x", "admin").token
    assert knowing(time, token=shaped).check_header(f"Bearer {shaped}").principal.id == ENVIRONMENT


def test_a_system_that_has_had_keys_never_counts_as_one_without(time: Time) -> None:
    assert not KnownKeys(time).any
    known = KnownKeys(time)
    known.replace([replace(make_key("gone", "admin").key, revoked_at=NOW)])
    assert known.any
    torn = KnownKeys(time)
    torn.replace([], others=True)
    assert torn.any


def test_uses_are_taken_once_and_not_if_they_were_noted_lately(time: Time) -> None:
    fresh, stale = make_key("fresh", "viewer"), make_key("stale", "viewer")
    keys = [replace(fresh.key, used_at=NOW - 1), replace(stale.key, used_at=NOW - 10_000)]
    known = knowing(time, *keys, token="own-key")
    for token in (fresh.token, stale.token, "own-key"):
        known.check_header(f"Bearer {token}")
    assert known.take_used(5_000) == [stale.key.id]
    assert known.take_used(5_000) == []
    known.of_header(f"Bearer {stale.token}")
    assert known.take_used(5_000) == [stale.key.id]


def test_a_renewed_key_is_for_the_same_and_as_long() -> None:
    old = replace(
        make_key("shop", "custom", permissions=["work", "enqueue"], queues=["a.*"], types=["b"], expires_at=NOW + 500).key,
        created_at=NOW,
    )
    assert old.permissions == ("enqueue", "work")
    new: NewKey = renewed(old, NOW + 100)
    assert new.key.expires_at == NOW + 600
    assert new.key.principal.permissions == {"enqueue", "work"}
    assert (new.key.queues, new.key.types, new.key.name) == (("a.*",), ("b",), "shop")
    assert new.key.id != old.id
    assert key_id_of(new.token) == new.key.id


@each(
    ("queues", "types", "queue", "job_type", "seen"),
    [
        ((), (), "mail", None, True),
        (("mail.*",), (), "mail.eu", None, True),
        (("mail.*",), (), "mail", None, False),
        (("mail", "sms.*"), (), "sms.eu.de", "a.b", True),
        ((), ("mail.*",), "q", "mail.send", True),
        ((), ("mail.*",), "q", "sms.send", False),
        ((), ("mail.*",), "q", None, False),
        (("q",), ("a",), "other", "a", False),
        (("[a-z]",), (), "b", None, False),
        (("?",), (), "b", None, False),
    ],
)
def test_a_narrowed_principal_sees_what_fits_and_nothing_whole(
    queues: tuple[str, ...], types: tuple[str, ...], queue: str, job_type: str | None, seen: bool
) -> None:
    principal = make_key("n", "viewer", queues=queues, types=types).key.principal
    assert principal.sees(queue, job_type) is seen
    assert principal.narrowed is bool(queues or types)


def test_roles_are_those_of_the_page() -> None:
    assert ROLES["operator"] == {"enqueue", "read", "payloads", "control"}
    assert ROLES["admin"] == set(PERMISSIONS)
    assert [ROLES[one] for one in ("producer", "worker", "viewer", "custom")] == [{"enqueue"}, {"work"}, {"read"}, set()]


def test_wrong_keys_wait_longer_by_address_and_are_forgotten_after_a_while() -> None:
    now = [0.0]
    slowing = Slowing(lambda: now[0])
    pauses = [slowing.pause("10.0.0.1") for _ in range(12)]
    assert pauses[:4] == [0.0, 0.05, 0.1, 0.2]
    assert max(pauses) == pauses[-1] == 2.0
    assert slowing.pause("10.0.0.2") == 0.0
    now[0] = 61.0
    assert slowing.pause("10.0.0.1") == 0.0
    for number in range(10_000):
        slowing.pause(str(number))
    assert len(slowing._wrong) == 4_096


def test_a_session_that_was_ended_is_taken_nowhere_any_more() -> None:
    key = make_key("person", "viewer").key
    gateways = [KnownKeys(lambda: NOW), KnownKeys(lambda: NOW)]
    for gateway in gateways:
        gateway.replace([key])
    sealed_session = gateways[0].session(key.principal)
    assert sealed_session is not None
    session = sealed_session[0]
    admissions = [gateway.check_cookie(session) for gateway in gateways]
    said = gateways[0].end_session(session)
    assert said is not None
    assert [admission.over for admission in admissions] == [True, False]
    record = replace(key, ended_sessions=with_ended((), said.mark, NOW))
    gateways[1].replace([record])
    assert [admission.over for admission in admissions] == [True, True]
    for gateway in gateways:
        assert gateway.of_cookie(session) is None
        with pytest.raises(OjsError, match="was ended"):
            gateway.check_cookie(session)


def test_a_key_names_the_last_of_its_ended_sessions_and_none_that_are_over() -> None:
    marks: tuple[str, ...] = ("1.over",)
    for number in range(MOST_ENDED + 5):
        marks = with_ended(marks, f"{NOW // 1_000 + 60}.{number:016d}", NOW)
    assert len(marks) == MOST_ENDED
    assert marks[-1].endswith(f"{MOST_ENDED + 4}")
    assert with_ended(marks, marks[-1], NOW) == marks
    assert with_ended(("1.over",), "2.too", NOW) == ("2.too",)
