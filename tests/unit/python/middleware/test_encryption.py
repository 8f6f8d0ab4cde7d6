"""What is encrypted can be read with its key alone."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from ojs_nats import App, Unique, _chain_runs
from ojs_nats.jobs import JobRequest
from ojs_nats.middleware import Encryption, Undecodable
from support.python_samples import context, run_of

OLD, NEW = b"o" * 32, b"n" * 32


async def pushed(codec: Encryption, *args: Any, **options: Any) -> JobRequest[Any]:
    app = App("http://localhost")
    codec.install(app)
    left = await _chain_runs.pushed(app.enqueue, JobRequest("a.job", args, options))  # type: ignore[arg-type]  # any options
    assert left is not None
    return left


async def run(codec: Encryption, new: JobRequest[Any], result: Any = None) -> tuple[list[Any], Any]:
    """The arguments that a handler is given, and what the server is."""
    running = run_of(new)

    async def handler() -> Any:
        return result

    return running.job.args, (await codec.on_run(running, handler), running.job.args)[0]


async def test_a_job_is_as_specified_and_its_handler_sees_plain_arguments() -> None:
    codec = Encryption({"old": OLD}, current="old")
    new = await pushed(codec, "Ada L.", {"card": 4111}, meta={"tenant": 1})
    assert new.options["meta"] == {"tenant": 1, "ojs.codec.encodings": ["binary/encrypted"], "ojs.codec.key_id": "old"}
    [sent] = new.args
    assert (sent["ojs_encoded"], sent["encoding"]) == (True, "binary/encrypted")
    raw = base64.b64decode(sent["data"])
    assert raw[0] == 1
    assert len(raw) == 1 + 12 + len(b'["Ada L.",{"card":4111}]') + 16
    running = run_of(new)

    async def handler() -> Any:
        return {"seen": running.job.args}

    told = await codec.on_run(running, handler)
    assert "Ada L." not in str(told)
    assert codec.decoded(told) == {"seen": ["Ada L.", {"card": 4111}]}


async def test_keys_are_rotated() -> None:
    before = await pushed(Encryption({"old": OLD}, current="old"), 1)
    both = Encryption({"new": NEW, "old": OLD}, current="new")
    after = await pushed(both, 2)
    assert after.options["meta"]["ojs.codec.key_id"] == "new"
    for new, number in ((before, 1), (after, 2)):
        running = run_of(new)

        async def handler(running: Any = running) -> Any:
            return running.job.args[0]

        assert both.decoded(await both.on_run(running, handler)) == number
    with pytest.raises(Undecodable, match="'new', and known here are only: old"):
        await run(Encryption({"old": OLD}, current="old"), after)


async def test_no_two_are_the_same() -> None:
    codec = Encryption({"old": OLD}, current="old")
    assert (await pushed(codec, 1)).args != (await pushed(codec, 1)).args


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"data": base64.b64encode(b"\x01" + b"x" * 40).decode()}, "isn't what was encrypted"),
        ({"data": base64.b64encode(b"\x02" + b"x" * 40).decode()}, "version 1"),
        ({"data": "AQ=="}, "version 1"),
        ({"data": "???"}, "isn't base64"),
        ({"data": 5}, "can't be read"),
        ({"encoding": "zstd/plain"}, "zstd/plain"),
    ],
)
async def test_what_was_changed_isn_t_run(change: dict[str, Any], said: str) -> None:
    codec = Encryption({"old": OLD}, current="old")
    new = await pushed(codec, "Ada")
    with pytest.raises(Undecodable, match=said):
        await run(codec, msgspec.structs.replace(new, args=({**new.args[0], **change},)))


async def test_what_isn_t_encrypted_is_as_it_was() -> None:
    codec = Encryption({"old": OLD}, current="old")
    assert await run(codec, JobRequest("a.job", ("plain",)), "result") == (["plain"], "result")
    assert codec.decoded({"ojs_encoded": "no"}) == {"ojs_encoded": "no"}


async def test_results_of_earlier_steps_are_read() -> None:
    codec = Encryption({"old": OLD}, current="old")
    _, told = await run(codec, await pushed(codec), 42)
    nested = ([[told, 1], {"a": [told]}], [[42, 1], {"a": [42]}])
    for results, wanted in (([told, 1], [42, 1]), ({"a": told}, {"a": 42}), (told, 42), (None, None), nested):
        running = context(parent_results=results, parent_results_by_index={"0": results})

        async def handler(running: Any = running) -> Any:
            return running.parent_results, running.parent_results_by_index

        assert await codec.on_run(running, handler) == (wanted, {"0": wanted})


async def test_uniqueness_by_what_nobody_can_compare_is_refused() -> None:
    codec = Encryption({"old": OLD}, current="old")
    with pytest.raises(ValueError, match="unique by its args, which are encrypted"):
        await pushed(codec, 1, unique=Unique())
    await pushed(codec, 1, unique=Unique(keys=["type", "meta"]))


def test_keys_have_32_bytes_and_one_is_current() -> None:
    with pytest.raises(ValueError, match=r"keys\['k'\] has 3 bytes"):
        Encryption({"k": b"abc"}, current="k")
    with pytest.raises(ValueError, match="current is 'new', and keys has only: old"):
        Encryption({"old": OLD}, current="new")
