"""`ojs-nats config --check`: what the settings will do that one may not want."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from ojs_command.client.doctor.findings import Finding, ok, problem, warning
from ojs_engine.base.wording import counted
from ojs_engine.store.capacity.disk import of_disk
from ojs_link.address import Address, read_address
from ojs_runtime.addresses import is_loopback
from ojs_runtime.settings import Settings


def check(settings: Settings) -> list[Finding]:
    """Judge the settings by themselves, and by this machine's disk where they name it; nothing is connected to."""
    address = read_address(settings.nats_of("gateway"))
    found = [*_door(settings), *_users(address), *_copies(settings, address), *_room(settings, address), *_tests(settings)]
    return found or [ok("settings", "there is nothing to warn of")]


def _door(settings: Settings) -> Iterator[Finding]:
    if settings.insecure and not is_loopback(settings.host) and settings.api_key is None and settings.api_key_file is None:
        yield warning(
            "door",
            f"the gateway listens on {settings.host}, and insecure lets it start without keys",
            "everybody who reaches the address may do everything",
            "make a key with 'ojs-nats keys create --role admin --name NAME --nats URL', and leave insecure out",
        )


def _users(address: Address) -> Iterator[Finding]:
    login = address.creds or address.cert or any(urlsplit(server).username for server in address.servers)
    if not login and not _is_here(address):
        yield warning(
            "users",
            "NATS is on other machines, and no credentials are named",
            "if it takes that, whoever reaches it may read, change and delete everything",
            "'ojs-nats nats-conf --users' prints users; name their files by nats_creds (docs/nats-users.md)",
        )


def _copies(settings: Settings, address: Address) -> Iterator[Finding]:
    servers = len(address.servers)
    if servers > 1 and settings.replicas == 1:
        yield warning(
            "copies",
            f"nats names {servers} servers, and replicas is 1",
            "streams are made with one copy: the loss of its server loses all jobs",
            "set replicas to 3",
        )
    if servers % 2 == 0:
        yield warning(
            "cluster",
            f"nats names {servers} servers, an even number",
            "as many servers, they survive no more failures than with one less",
            "run three or five; if it is not all of them, name the others, too",
        )
    if settings.replicas % 2 == 0:
        yield warning(
            "copies",
            f"replicas is {settings.replicas}, an even number",
            "so many copies survive no more failures than with one less",
            "set it to 3 or 5",
        )
    if settings.replicas > 1 and servers == 1:
        yield warning(
            "cluster",
            "nats names one server of a cluster",
            "a process that starts while that one is away doesn't find the others",
            "name all of them, as a comma list",
        )


def _is_here(address: Address) -> bool:
    return all(is_loopback(urlsplit(server).hostname or "") for server in address.servers)


def _room(settings: Settings, address: Address) -> Iterator[Finding]:
    if settings.storage_limit == 0 and (settings.replicas > 1 or address.creds or not _is_here(address)):
        yield warning(
            "storage",
            "storage_limit is not set",
            "NATS doesn't tell max_file_store: new jobs are not refused before it is full, unless the account has a limit",
            "set it to max_file_store of one nats-server, in bytes, as the configuration of 'ojs-nats nats-conf' names it",
        )
    folder = settings.storage_folder
    if folder is None:
        return
    disk = of_disk(folder, settings.storage_reserve)
    if disk is None:
        yield problem(
            "disk",
            f"storage_folder {folder} is not there",
            "the disk's room is not looked at",
            "name a folder on nats-server's disk, or leave it out",
        )
        return
    free = disk.limit - disk.used
    if free < disk.reserve:
        yield problem(
            "disk",
            f"the disk of {folder} has {counted(free, 'byte')} left, and storage_reserve is {disk.reserve:,}",
            "new jobs are refused",
            "make room there",
        )
    if settings.storage_limit > disk.limit:
        yield warning(
            "storage",
            f"storage_limit is {settings.storage_limit:,} bytes, and the disk of {folder} has {disk.limit:,}",
            "the disk is full first, and nats-server doesn't recover from that by itself",
            "set max_file_store, and storage_limit with it, below the size of the disk",
        )


def _tests(settings: Settings) -> Iterator[Finding]:
    if settings.test_mode:
        yield warning(
            "test mode",
            "test_mode is on",
            "whoever reaches a gateway can wipe everything with one request",
            "leave it out, unless this is for tests",
        )
