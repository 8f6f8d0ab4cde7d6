from __future__ import annotations

from pathlib import Path

import pytest

from ojs_link.login import Login, LoginProblem, new_seed, read_login

SEED, PUBLIC = new_seed()
CREDS = f"""\
-----BEGIN NATS USER JWT-----
ab.cd-e_f.gh
------END NATS USER JWT------

************************* IMPORTANT *************************
-----BEGIN USER NKEY SEED-----
{SEED}
------END USER NKEY SEED------
"""


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("shop:se:cret\n", Login(user="shop", password="se:cret")),
        ("  shop: \n\n", Login(user="shop", password="")),
        ("t0ken", Login(token="t0ken")),
        (":to:ken", Login(token="to:ken")),
    ],
)
def test_a_line_is_a_user_and_a_password_or_a_token(tmp_path: Path, text: str, login: Login) -> None:
    (tmp_path / "login").write_text(text, encoding="utf-8")
    assert read_login(str(tmp_path / "login")) == login


def test_a_seed_and_a_creds_file_are_told_apart(tmp_path: Path) -> None:
    seed, creds = tmp_path / "seed", tmp_path / "creds"
    seed.write_text(f"{SEED}\n{PUBLIC}\n", encoding="utf-8")
    creds.write_text(CREDS, encoding="utf-8")
    of_seed, of_creds = read_login(str(seed)), read_login(str(creds))
    assert (of_seed.public_key, of_seed.jwt) == (PUBLIC, None)
    assert (of_creds.public_key, of_creds.jwt) == (None, "ab.cd-e_f.gh")
    assert of_seed.sign is not None
    assert of_creds.sign is not None
    assert of_seed.sign("nonce") == of_creds.sign("nonce") != of_creds.sign("other")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "not of a kind"),
        (b"\xff\xfe\x00", "not of a kind"),
        (b"a" * 70_000, "not of a kind"),
        (b"shop:secret\nmore:secret\n", "have 2 lines"),
        (CREDS.partition("*")[0].encode(), "half of a .creds file"),
        (CREDS.replace("ab.cd-e_f.gh\n", "").encode(), "half of a .creds file"),
        pytest.param(SEED[:-3].encode(), "a seed that was cut", id="a cut seed"),
    ],
)
def test_what_cannot_be_used_is_told_without_what_is_in_it(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "login").write_bytes(text)
    with pytest.raises(LoginProblem, match=words) as problem:
        read_login(str(tmp_path / "login"))
    assert "secret" not in str(problem.value)
    assert SEED[:20] not in str(problem.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoginProblem, match="gone can't be read: No such file"):
        read_login(str(tmp_path / "gone"))
