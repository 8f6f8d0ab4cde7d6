"""What is kept of members of extensions, by request after request."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.extensions import Extensions, extensions_in, sent_extensions
from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits


def raws(body: bytes) -> dict[str, Raw]:
    return msgspec.json.decode(body, type=dict[str, Raw])


def after(old: Extensions, body: bytes, replaced: tuple[str, ...] = (), changed: tuple[str, ...] = ()) -> dict[str, bytes]:
    sent = sent_extensions(raws(body), DEFAULT_LIMITS, replaced=replaced, changed=changed)
    return {path: bytes(raw) for path, raw in sent.over(old).items()}


def test_values_are_kept_byte_by_byte_and_other_members_are_not() -> None:
    body = b'{"ext_a": {"n":[1.0,1E5,-0.0,12345678901234567890]}, "x_b":"\\u00e9" ,"url":"u","xb":1,"ext":2}'
    assert after({}, body) == {"ext_a": b'{"n":[1.0,1E5,-0.0,12345678901234567890]}', "x_b": b'"\\u00e9"'}


def test_null_takes_one_back_and_what_is_not_sent_stays() -> None:
    old = raws(b'{"ext_a":1,"ext_b":2}')
    assert after(old, b'{"ext_a":null,"x_c":3}') == {"ext_b": b"2", "x_c": b"3"}
    assert after(old, b"{}") == {"ext_a": b"1", "ext_b": b"2"}


def test_those_of_an_inner_object_go_with_it() -> None:
    old = raws(b'{"filter.x_a":1,"filter.x_a.b":2,"x_a":3}')
    assert after(old, b'{"filter":{"x_d":4,"queues":[]}}', replaced=("filter",)) == {"x_a": b"3", "filter.x_d": b"4"}
    assert after(old, b'{"filter":null}', changed=("filter",)) == {"x_a": b"3"}
    changed = after(old, b'{"filter":{"x_a":null}}', changed=("filter",))
    assert changed == {"filter.x_a.b": b"2", "x_a": b"3"}
    assert after({}, b'{"filter":[{"x_a":1}],"other":{"x_a":1}}', replaced=("filter",)) == {}


def test_a_name_may_have_dots() -> None:
    old = raws(b'{"ext_a.":1}')
    assert after(old, b'{"ext_a":2}') == {"ext_a.": b"1", "ext_a": b"2"}


def test_members_and_bytes_are_bounded() -> None:
    limits = PayloadLimits(max_extra_members=2, max_metadata_bytes=20)
    sent = sent_extensions(raws(b'{"x_a":1,"x_b":2,"x_c":3}'), limits)
    with pytest.raises(OjsError, match=r"x_c is one of 3 members .* the limit is 2"):
        sent.over({}, limits)
    large = sent_extensions(raws(b'{"x_a":1,"x_b":"0123456789012345"}'), limits)
    with pytest.raises(OjsError, match=r"are 25 bytes, most of them in x_b; the limit is 20 bytes") as refused:
        large.over({}, limits)
    assert refused.value.details == {"field": "x_b", "actual_bytes": 25, "max_bytes": 20}
    deep = b'{"x_a":' + b"[" * 65 + b"]" * 65 + b"}"
    with pytest.raises(OjsError, match="x_a is nested deeper than 64 levels"):
        sent_extensions(raws(deep), DEFAULT_LIMITS)


def test_a_body_that_is_read_otherwise_is_looked_through() -> None:
    assert extensions_in(b'{"state":{"x_a":1},"ext_b":2,"x_c":null}', DEFAULT_LIMITS) == {"ext_b": Raw(b"2")}
    assert extensions_in(b'{"state":1}', DEFAULT_LIMITS) == {}
    assert extensions_in(b"", DEFAULT_LIMITS) == {}
