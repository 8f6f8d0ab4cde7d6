"""Whom a client trusts, and what it shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ojs_nats import App, Client
from ojs_nats._tls import Trust, or_else
from ojs_nats.sync import SyncClient
from ojs_nats.tls import Tls
from support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def subjects(trust: Trust) -> list[object]:
    """The CAs that are trusted."""
    return [found["subject"] for found in trust.context().get_ca_certs()]


def test_files_that_have_changed_are_read_again(authority: Authority, tmp_path: Path) -> None:
    clock = Clock()
    trust = Trust(Tls(ca_file=str(authority.file)), clock)
    before = trust.context()
    trusted = subjects(trust)
    authority.file.write_bytes(Authority(tmp_path, "other").file.read_bytes())
    assert trust.context() is before  # it isn't looked at each time
    clock.now = 11.0
    assert subjects(trust) != trusted


@pytest.mark.parametrize("spoil", [Path.unlink, lambda file: file.write_text("no PEM")])
def test_files_that_are_spoilt_leave_what_was_in_them(authority: Authority, spoil: Callable[[Path], None]) -> None:
    clock = Clock()
    trust = Trust(Tls(ca_file=str(authority.file)), clock)
    before = trust.context()
    good = authority.file.read_bytes()
    spoil(authority.file)
    clock.now = 11.0
    assert trust.context() is before
    authority.file.write_bytes(good + b"\n")
    clock.now = 22.0
    assert trust.context() is not before


def test_a_context_of_ones_own_stays(authority: Authority) -> None:
    context = authority.trusting()
    assert Trust(context).context() is context


@pytest.mark.parametrize("make", [App, Client, SyncClient])
def test_tls_is_for_https_alone(make: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="tls is for https:// addresses"):
        make("http://127.0.0.1:8080", tls=Tls(ca_file="ca.pem"))
    with pytest.raises(ValueError, match=r"ca_file none\.pem can't be read \(No such file or directory\): correct the path"):
        make("https://127.0.0.1:8080", tls=Tls(ca_file="none.pem"))


async def test_variables_count_where_https_is_spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OJS_CA_FILE", "none.pem")
    App("https://127.0.0.1:8080")  # an application may be imported where the file isn't
    Client("http://127.0.0.1:8080")
    with pytest.raises(ValueError, match=r"OJS_CA_FILE none\.pem can't be read"):
        Client("https://127.0.0.1:8080")


def test_a_certificate_that_is_named_brings_its_own_key() -> None:
    other = Tls(ca_file="ca", cert_file="other", key_file="other.key")
    assert or_else(Tls(cert_file="own"), other) == Tls(ca_file="ca", cert_file="own")
    assert or_else(Tls(ca_file="mine"), other) == Tls(ca_file="mine", cert_file="other", key_file="other.key")
