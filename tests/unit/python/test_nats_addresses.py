"""What follows the `?` of a NATS address."""

from __future__ import annotations

import pytest

from ojs_core.jetstream.subjects import DEFAULT_NAMESPACE, is_namespace
from ojs_nats import Client
from ojs_nats._names import namespace
from ojs_nats._nats import nats_options


def test_an_address_without_options_is_of_the_system_that_names_no_namespace() -> None:
    assert nats_options("") == ("_INBOX", DEFAULT_NAMESPACE)
    assert nats_options("namespace=shop&inbox_prefix=_INBOX_till") == ("_INBOX_till", "shop")


@pytest.mark.parametrize(
    ("option", "told"), [("namespace=A", "not 'A'"), ("namespace=", "not ''"), ("name=a", "and namespace")]
)
def test_another_option_is_refused_where_the_address_is_written(option: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Client(f"nats://127.0.0.1:4222?{option}")


@pytest.mark.parametrize("name", ["ojs", "a", "a-b", "a" * 32, "", "A", "a.b", "a_b", "1a", "-a", "*", "a" * 33, "a\n", "é"])
def test_the_client_takes_the_names_that_the_server_takes(name: str) -> None:
    if is_namespace(name):
        assert namespace(name) == name
    else:
        with pytest.raises(ValueError, match="a namespace has"):
            namespace(name)
