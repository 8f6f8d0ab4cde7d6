"""What one key may ask of a gateway, over HTTP and NATS."""

from __future__ import annotations

from pathlib import Path

import pytest

from ojs_nats import Client
from ojs_nats.errors import RateLimitedError, UnavailableError
from ojs_nats.jobs import JobRequest
from support.cli import Cli
from support.guarded import Guarded
from support.waiting import eventually

JOB = {"type": "limited.job", "args": [], "options": {"queue": "limited"}}


async def limited(guarded: Guarded, name: str, **limits: int) -> tuple[str, str]:
    """Token and id of a key that may do all but change things."""
    permissions = ["enqueue", "work", "read", "payloads"]
    made = await guarded.made(name, "custom", permissions=permissions, limits=limits)
    assert made["key"]["limits"] == limits
    return made["token"], made["key"]["id"]


async def test_a_limit_counts_over_http_and_nats_together_and_can_be_changed_while_it_runs(guarded: Guarded) -> None:
    token, key_id = await limited(guarded, "both", pushes_per_second=1)
    async with Client(guarded.system.nats_url, token=token, retry_for=0) as client:
        await client.push_all([JobRequest[None]("limited.both", ()) for _ in range(500)])
        with pytest.raises(UnavailableError) as error:
            await client.push(JobRequest[None]("limited.both", ()))
        assert isinstance(error.value.__cause__, RateLimitedError)
        assert (error.value.retry_after_s or 0) > 100
        assert (await guarded.ask("POST", "/jobs", JOB | {"type": "limited.both"}, token=token))[0] == 429
        admin = guarded.tokens["admin"]
        status, changed, _ = await guarded.ask("PUT", f"/admin/keys/{key_id}/limits", {"pushes_per_second": 0}, token=admin)
        assert (status, changed["key"]["limits"]) == (200, {"pushes_per_second": 0})

        async def pushed() -> bool:
            return (await guarded.ask("POST", "/jobs", JOB | {"type": "limited.both"}, token=token))[0] == 201

        await eventually(pushed)
        await client.push(JobRequest[None]("limited.both", ()))


async def test_limits_of_a_key_that_is_gone_or_has_ended_are_refused(guarded: Guarded) -> None:
    admin = guarded.tokens["admin"]
    key_id = (await guarded.made("ended", "viewer"))["key"]["id"]
    assert (await guarded.ask("DELETE", f"/admin/keys/{key_id}", token=admin))[0] == 200
    status, answer, _ = await guarded.ask("PUT", f"/admin/keys/{key_id}/limits", {"streams": 1}, token=admin)
    assert (status, "can't be changed" in answer["error"]["message"]) == (409, True)
    assert (await guarded.ask("PUT", "/admin/keys/nobody/limits", {"streams": 1}, token=admin))[0] == 404


def test_the_commands_set_show_and_change_limits_also_on_nats(guarded: Guarded, tmp_path: Path) -> None:
    file = tmp_path / "admin.key"
    file.write_text(guarded.tokens["admin"])
    cli = Cli(tmp_path, guarded.url)
    shown = ("--token-file", str(file))
    name = ("--name", "by-command", "--role", "producer")
    made = cli("keys", "create", *name, "--pushes-per-second", "100", "--streams", "5", "--json", *shown).json["key"]
    assert {name: most for name, most in made["limits"].items() if most is not None} == {"pushes_per_second": 100, "streams": 5}
    row = next(line for line in cli("keys", *shown).out.splitlines() if "by-command" in line)
    assert "100 pushes a second, 5 streams" in row
    said = cli("keys", "limit", made["id"], "--waiting", "7", *shown)
    assert (said.code, "7 waiting" in said.out + said.err) == (0, True), said
    on_nats = cli("keys", "limit", made["id"], "--streams", "0", "--json", "--nats", guarded.system.nats_url_by_role)
    assert on_nats.json["limits"]["streams"] == 0
    assert cli("keys", "limit", made["id"], "--streams", "some", *shown).code == 2
