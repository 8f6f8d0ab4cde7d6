"""Records of a newer format than this version knows."""

from __future__ import annotations

import msgspec
import pytest

from ojs_engine.jetstream.reading import FORMAT, RecordReader, Unreadable
from ojs_engine.store.records.blobs import blob_reader


class Limit(msgspec.Struct):
    most: int
    meta: msgspec.Raw = msgspec.Raw(b"{}")


reader = RecordReader("limit", msgspec.json.Decoder(Limit).decode)


def test_a_record_of_a_newer_format_says_so_and_is_not_read() -> None:
    body = b'{"record_format":%d,"most":"of another kind"}' % (FORMAT + 1)
    with pytest.raises(Unreadable, match=f"it is of format {FORMAT + 1}, and this version reads up to {FORMAT}: .* upgrade"):
        reader.decode("x", body)
    assert reader.read("x", 1, body) is None


@pytest.mark.parametrize("named", [b'"record_format":%d,' % FORMAT, b'"record_format" : 1, ', b""])
def test_a_record_of_this_format_is_read_whether_it_names_it_or_not(named: bytes) -> None:
    assert reader.decode("x", b'{%b"most":3}' % named).most == 3


def test_what_a_client_wrote_inside_a_record_is_not_its_format() -> None:
    assert reader.decode("x", b'{"most":3,"meta":{"record_format":9}}').most == 3
    assert bytes(blob_reader.decode("x", b'{"record_format":9}')) == b'{"record_format":9}'
