"""Rules about the server: NATS behind it, room, services, their lag, durability, limits and records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ojs_engine.base.wording import counted, duration
from ojs_engine.domain.storage_room import StorageLevel
from ojs_engine.operations.finding import SHOWN, Finding, problem, warning
from ojs_engine.store.workers.presence import ServiceBeat
from ojs_index.asking.messages import ProjectorStatus, UnreadablePage

_SLOW_MS: Final = 100
_NEARLY_FULL: Final = 0.8
_LAG_WARNING_MS: Final = 2_000
_LAG_PROBLEM_MS: Final = 30_000
_SYSTEM: Final = "/system"
_WITHOUT: Final = {
    "gateway": "clients are not answered",
    "scheduler": "delayed jobs, retries and cron entries do not come due",
    "reaper": "jobs of workers that have died are not given to others, and time-outs do not end",
    "projector": "lists, statistics and events are refused or old",
}
"""What doesn't happen without a process of a role."""
_START_PROJECTOR: Final = "start one: 'ojs-nats projector --nats URL'; if its process is there, see its log, and restart it"
_FROM_BACKUP: Final = "look at nats-server's log and its disk; what is gone comes back from a backup alone (docs/debugging.md)"


def nats(latency_ms: float | None, error: str | None, damage: str | None, faulty: str | None = None) -> Iterator[Finding]:
    """Whether NATS stores what is written: how long a write takes, or why there is none, and what it has lost.

    `faulty` says why its version should be upgraded.
    """
    if faulty is not None:
        yield warning("nats", faulty, "jobs may be refused, or fire late", "upgrade nats-server", _SYSTEM)
    if error is not None:
        yield problem(
            "nats",
            f"NATS does not store what is written: {error}",
            "pushes, fetches and acknowledgements are refused until it does",
            "see that nats-server runs and a majority of a cluster is up; 'ojs-nats doctor --nats URL' asks it itself",
            _SYSTEM,
        )
    elif damage is not None:
        lost = "jobs, tokens or timers that were stored are gone; what is left goes on"
        yield problem("nats", f"NATS has lost data: {damage}", lost, _FROM_BACKUP, _SYSTEM)
    elif (latency_ms or 0) > _SLOW_MS:
        yield warning(
            "nats",
            f"a write takes NATS {latency_ms:.0f} ms",
            "every push and acknowledgement waits for it",
            "give nats-server a faster disk, or look what else uses it",
            _SYSTEM,
        )


def storage(levels: Sequence[StorageLevel], shortage: str | None, trouble: str | None) -> Iterator[Finding]:
    """Whether there is room; `trouble` says why nothing can be written."""
    room = "make room there, raise the limit, or keep finished jobs for less time (docs/retention.md)"
    if shortage is not None or trouble is not None:
        refused = "new jobs are refused; those that are there can be finished"
        yield problem("storage", shortage or f"nothing can be written: {trouble}", refused, room, _SYSTEM)
    elif nearly := [level for level in levels if _used(level) > _NEARLY_FULL]:
        full = ", ".join(f"{level.of} is {_used(level):.0%} full" for level in nearly)
        yield warning("storage", full, "once it is full, new jobs are refused", room, _SYSTEM)


def _used(level: StorageLevel) -> float:
    return level.used / max(level.limit - level.reserve, 1)


def services(missing: Sequence[str], features: Mapping[str, str]) -> Iterator[Finding]:
    """Whether each role has a process. `features` says what users miss without one of their roles."""
    for role in missing:
        yield problem(
            "services",
            f"no {role} has been heard of lately",
            features.get(role) or _WITHOUT[role],
            f"start one: 'ojs-nats {role} --nats URL'; if its process is there, see its log",
            _SYSTEM,
        )


def versions(beats: Sequence[ServiceBeat]) -> Iterator[Finding]:
    """Whether all processes are of one version."""
    roles: dict[str, set[str]] = defaultdict(set)
    for beat in beats:
        roles[beat.version or "one that doesn't say"].add(beat.role)
    if len(roles) > 1:
        listed = "; ".join(f"{version}: {', '.join(sorted(named))}" for version, named in sorted(roles.items()))
        yield warning(
            "mixed versions",
            f"processes of several versions run: {listed}",
            "what the newer one has brought may be refused or wait, depending on who is asked",
            "finish the upgrade: start the older ones anew in the newer version (deploy/README.md)",
            _SYSTEM,
        )


def projector(status: ProjectorStatus | None, error: str | None) -> Iterator[Finding]:
    """Whether lists and statistics are of now; `error` says why no projector has answered."""
    behind = "lists, statistics and events are refused or old"
    if status is None:
        yield problem("projector", error or "no projector answers", behind, _START_PROJECTOR, _SYSTEM)
        return
    if gone := status.repaired.get("record"):
        yield problem(
            "projector",
            f"{counted(gone, 'record')} that were stored were gone from NATS",
            "these jobs, workflows or cron entries are lost: no list shows them any more",
            f"{_FROM_BACKUP}. A restart of the projector ends this message",
            _SYSTEM,
        )
    if status.partial:
        yield warning(
            "projector",
            f"the index is being built: {status.progress:.0%} of it is there",
            "lists and totals are incomplete until it is whole, and bulk changes by a filter are refused",
            "wait: it ends by itself; a faster disk or processor for the projector makes it shorter",
            _SYSTEM,
        )
    elif status.lag_ms >= _LAG_WARNING_MS:
        kind = problem if status.lag_ms >= _LAG_PROBLEM_MS else warning
        remedy = "wait if it was just started; else see its log, and give it a faster disk or processor"
        yield kind("projector", f"the projector is {duration(status.lag_ms / 1_000)} behind", behind, remedy, _SYSTEM)


def lost(names: Sequence[str], missing: Sequence[str]) -> Iterator[Finding]:
    """Whether NATS still has what restricts clients; `names` were known and lost, `missing` are of those still."""
    if names:
        listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
        only = "; all were written back" if not missing else f"; {len(missing)} could not be written back"
        yield problem(
            "lost records",
            f"NATS has lost settings or keys that this gateway knew: {listed}{only}",
            "this gateway goes on by them; what was not written back ends with it, and jobs may be lost as well",
            f"see that each stands as it should. {_FROM_BACKUP}. A restart of the gateway ends this message",
            _SYSTEM,
        )


def durability(copies: int, *, test_mode: bool) -> Iterator[Finding]:
    """Whether jobs outlive the loss of a disk, and whether anybody may wipe them."""
    if copies == 1:
        yield warning(
            "durability",
            "NATS keeps one copy of each job",
            "a lost disk loses all jobs, and while that server is down nothing works",
            "for more than trying it, run three nats-servers as a cluster, 'ojs-nats setup --replicas 3', and the services so",
            _SYSTEM,
        )
    if test_mode:
        yield warning(
            "test mode",
            "the gateway runs in test mode",
            "whoever reaches it can wipe everything with one request",
            "start the services without --test-mode, unless this is for tests",
            _SYSTEM,
        )


def limits(queues: int, busy: int) -> Iterator[Finding]:
    """Whether there are nearly as many queues as can be `busy` at a time."""
    if busy and queues > busy * _NEARLY_FULL:
        yield warning(
            "limits",
            f"there are {queues:,} queues, of which {busy:,} can be busy at a time, each with one priority",
            "fetches from more of them are refused while they are busy",
            "use fewer queues, or raise the limit (docs/adr/029)",
            "/queues",
        )


def records(page: UnreadablePage) -> Iterator[Finding]:
    """Whether everything that is stored can be read."""
    if page.records:
        named = "; ".join(f"{record.kind} {record.key}: {record.problem}" for record in page.records[:SHOWN])
        more = f" and {page.total - SHOWN:,} more" if page.total > SHOWN else ""
        yield problem(
            "records",
            f"records can't be read: {named}{more}",
            "they are passed over: such a job doesn't run",
            "after a rollback let the newer version read them; else look at each ('nats kv get ojs KIND.KEY'), and remove it: "
            "'curl -X DELETE $OJS/admin/unreadable/KIND/KEY' (docs/admin.md)",
            "/system?part=unreadable",
        )
