"""What follows the `?` of a NATS address."""

from __future__ import annotations

import pytest

from ojs_engine.jetstream.subjects import is_namespace
from ojs_nats import Client
from ojs_nats._names import namespace
from ojs_nats._nats_address import nats_address
from support.tables import each


def test_an_address_without_options_is_of_the_system_that_names_no_namespace() -> None:
    address = nats_address("nats://h")
    assert (address.inbox_prefix, address.namespace) == ("_INBOX", "")
    address = nats_address("nats://h?namespace=shop&inbox_prefix=_INBOX_till")
    assert (address.inbox_prefix, address.namespace) == ("_INBOX_till", "shop")


@pytest.mark.parametrize(
    ("option", "told"), [("namespace=A", "not 'A'"), ("namespace=", "each has a value"), ("name=a", "namespace")]
)
def test_another_option_is_refused_where_the_address_is_written(option: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Client(f"nats://127.0.0.1:4222?{option}")


@each("name", ["ojs", "a", "a-b", "a" * 32, "", "A", "a.b", "a_b", "1a", "-a", "*", "a" * 33, "a\n", "é"])
def test_the_client_takes_the_names_that_the_server_takes(name: str) -> None:
    if is_namespace(name):
        assert namespace(name) == name
    else:
        with pytest.raises(ValueError, match="a namespace has"):
            namespace(name)
