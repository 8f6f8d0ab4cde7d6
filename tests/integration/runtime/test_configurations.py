"""The configurations that the project ships or prints, checked by nats-server itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from ojs_command.embedded import configuration
from ojs_command.main import main
from ojs_command.server_conf import FILE_GB, LIMITS, MAX_PAYLOAD
from support.certificates import Authority
from support.nats import configured, program
from support.processes import free_port
from support.waiting import eventually

SHIPPED = Path(__file__).parents[3] / "nats.conf"
CLUSTER = ("--cluster", "a.internal,b.internal,c.internal")

Printed = Callable[..., str]


def checked(text: str, folder: Path) -> str:
    """Return a configuration that nats-server takes."""
    file = folder / "nats.conf"
    file.write_text(text, encoding="utf-8")
    check = subprocess.run([program(), "-t", "-c", str(file)], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr
    return text


@pytest.fixture
def printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Printed:
    def of(*arguments: str) -> str:
        assert main(["nats-conf", "--seeds", str(tmp_path / "seeds"), *arguments]) == 0, capsys.readouterr().err
        return checked(capsys.readouterr().out, tmp_path)

    return of


def test_what_the_services_rely_on_is_the_same_everywhere(printed: Printed, tmp_path: Path) -> None:
    texts = [SHIPPED.read_text(encoding="utf-8"), configuration(tmp_path, 4222), printed(), printed(*CLUSTER)]
    for text in texts:
        checked(text, tmp_path)
        assert f"max_payload: {MAX_PAYLOAD}" in text
        assert "".join(LIMITS.split()) in "".join(text.split())


def test_one_server_loses_nothing_to_a_power_cut_unless_told_otherwise(printed: Printed) -> None:
    assert "sync_interval: always" in printed()
    assert 'sync_interval: "2m"' in printed("--sync", "2m")
    assert 'sync_interval: "2m"' in printed(*CLUSTER)


@pytest.mark.parametrize(
    ("asked", "gigabytes"),
    [
        ((), FILE_GB["small"]),
        *((("--size", size), gigabytes) for size, gigabytes in FILE_GB.items()),
        (("--jobs", "1"), 2),
        (("--jobs", "5000000"), 34),
    ],
)
def test_room_by_size_or_by_jobs(printed: Printed, asked: tuple[str, ...], gigabytes: int) -> None:
    text = printed(*asked)
    assert f"max_file_store: {gigabytes}GB" in text
    assert f"OJS_STORAGE_LIMIT={gigabytes * 1024**3}" in text


def test_each_server_of_a_cluster_knows_the_others(printed: Printed) -> None:
    texts = [printed(*CLUSTER, "--node", str(node)) for node in (1, 2, 3)]
    for number, (host, text) in enumerate(zip("abc", texts, strict=True), 1):
        assert f"server_name: nats-{number}" in text
        assert f'host: "{host}.internal"' in text
        assert all(f'"nats://{other}.internal:6222"' in text for other in "abc")
    assert 'host: "nats-2.internal"' in printed("--cluster", "3", "--node", "2")


def test_two_servers_of_one_machine_have_ports_of_their_own(printed: Printed) -> None:
    text = printed("--port", "4223", "--monitor-port", "8223")
    assert ("\nport: 4223\n" in text, 'http: "127.0.0.1:8223"' in text, "4222" in text) == (True, True, False)
    assert "\nport: 4224\n" in printed("--leaf", "nats-leaf://hub.internal", "--port", "4224")
    assert "\nport: 4222\n" in printed()
    assert 'http: "127.0.0.1:8222"' in printed()


def test_users_and_certificates_go_into_it(printed: Printed, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    pair = authority.server()
    files = ("--tls-cert", str(pair.certificate), "--tls-key", str(pair.key), "--tls-ca", str(authority.file))
    text = printed(*CLUSTER, *files, "--users", "--leaf-port", "7422")
    assert text.count(str(pair.certificate)) == 3
    assert text.count("verify: true") == 1
    assert text.count("nkey: U") == len(list((tmp_path / "seeds").iterdir()))
    alone = printed("--users")
    assert "jetstream {" not in alone
    assert alone in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cluster", "2"), "2 servers are no odd number from 3 to 7"),
        (("--cluster", "a,b,c,d"), "4 servers are no odd number from 3 to 7"),
        (("--cluster", "3", "--node", "4"), "--node 4 is none of 1 to 3"),
        (("--node", "2"), "name that with --cluster, too"),
        (("--cluster", "3", "--host", "x"), "--host is of a single server"),
        (("--jobs", "0"), "--jobs 0 is not a number from 1"),
        (("--leaf-port", "70000"), "--leaf-port: 70000 is not a port"),
        (("--port", "0"), "--port: 0 is not a port"),
        (("--monitor-port", "٣"), "--monitor-port: ٣ is not a port"),
        (("--leaf", "nats-leaf://hub", "--monitor-port", "8223"), "--monitor-port is of the server that a leaf"),
        (("--tls-cert", "x"), "--tls-cert and --tls-key go together"),
        (("--host", 'x" authorization'), "is not a host name or an address"),
        (("--leaf", "hub"), "--leaf hub is not an address like nats-leaf://hub.internal:7422"),
        (("--leaf", "nats-leaf://hub", "--users"), "--users is of the server that a leaf connects to"),
        (("--leaf", "nats-leaf://hub", "--jobs", "5"), "--jobs is of the server that a leaf connects to"),
        (("--leaf-seed", "x"), "--leaf-seed is what a leaf shows"),
    ],
)
def test_what_does_not_go_together_is_said(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["nats-conf", *arguments])
    except SystemExit as left:  # argparse's own
        code = int(left.code or 0)
    printed = capsys.readouterr()
    assert (code > 0, printed.out) == (True, "")
    assert said in printed.err


def test_an_open_address_without_users_is_warned_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["nats-conf", "--host", "0.0.0.0"]) == 0
    assert "whoever reaches this server may do everything" in capsys.readouterr().err
    assert main(["nats-conf", "--host", "0.0.0.0", "--users", "--seeds", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""


async def test_who_asks_at_a_leaf_is_answered_at_the_hub(printed: Printed, tmp_path: Path) -> None:
    port = str(free_port())
    hub = printed("--leaf-port", port, "--store", str(tmp_path / "store"))
    leaf = printed("--leaf", f"nats-leaf://127.0.0.1:{port}")
    with configured(tmp_path / "hub", hub) as at_hub, configured(tmp_path / "leaf", leaf) as at_leaf:
        server, client = [
            await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.1) for url in (at_hub, at_leaf)
        ]

        async def answer(request: Msg) -> None:
            await request.respond(b"at the hub")

        await server.subscribe("ojs.api.pushJob", cb=answer)

        async def answered() -> bool:
            try:
                return (await client.request("ojs.api.pushJob", b"", timeout=1)).data == b"at the hub"
            except (nats.errors.NoRespondersError, nats.errors.TimeoutError):
                return False

        await eventually(answered)
        await client.close()
        await server.close()
