"""The whole server as its users run it: `ojs-nats dev`, with its services in one process or in one each."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import nats

from ojs_command.services import SERVICES
from ojs_engine.jetstream.grants import ANSWERING
from support import users
from support.forked import OJS_NATS, STACKS, start
from support.nats import NatsServer
from support.processes import end, family, free_port, runs
from support.waiting import PATIENCE_S, until

TOGETHER: Final = "--together"
"""All services in one process, which starts in a fifth of the time. Who kills or looks at a service goes without."""

_READY_SECONDS: Final = 180.0
_NATS_SERVER: Final = "nats-server"
"""Its name among the processes of a system."""
_BEHIND: Final = ("the projector is behind; try again", "the projector is slow; try again")
_AGAIN_S: Final = 0.25
_IDLE_S: Final = 20.0
"""A server may close a connection that isn't used for longer."""
_END: Final = 20_000
"""Characters of the output that a failure shows."""
_PRINTED_S: Final = 1.0
"""So long after the last line of its stacks, a process has printed them all."""


class Answer(NamedTuple):
    """An HTTP answer; `body` is the decoded JSON, None if there is none."""

    status: int
    body: Any
    headers: Mapping[str, str]


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of a server, plus `more`."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OJS_")} | more


def _printing_stacks() -> dict[str, str]:
    """Return the environment of processes that print their stacks at SIGUSR1."""
    return environment(PYTHONPATH=os.pathsep.join(filter(None, (str(STACKS), os.environ.get("PYTHONPATH")))))


Way = Callable[[str, str, object, float, Mapping[str, str]], "Answer"]
"""How a request is sent: its method, address, body, patience in seconds and headers."""


def send(
    method: str, url: str, body: object = None, *, seconds: float = PATIENCE_S, headers: Mapping[str, str] | None = None
) -> Answer:
    """An HTTP request and its answer; `body` is sent as JSON. Refusals are answers, too.

    Whoever reads what a projector that is behind can't tell yet asks again, as clients do.
    """
    return _sent_by(_over_its_own, method, url, body, seconds, headers or {})


def _sent_by(way: Way, method: str, url: str, body: object, seconds: float, headers: Mapping[str, str]) -> Answer:
    late = time.monotonic() + seconds
    while True:
        answer = way(method, url, body, seconds, headers)
        if method != "GET" or not is_behind(answer) or time.monotonic() > late:
            return answer
        time.sleep(_AGAIN_S)


def is_behind(answer: Answer) -> bool:
    """Whether what was asked for can't be told yet."""
    return answer.status == 503 and answer.body is not None and answer.body.get("error", {}).get("message") in _BEHIND


def _over_its_own(method: str, url: str, body: object, seconds: float, headers: Mapping[str, str]) -> Answer:
    """Send a request over a connection of its own."""
    request = urllib.request.Request(url, _encoded(body), {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=seconds) as response:
            return _answer(response.status, response.read(), dict(response.headers))
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error.read(), dict(error.headers))


def _encoded(body: object) -> bytes | None:
    return body if isinstance(body, bytes | None) else json.dumps(body).encode()


def _answer(status: int, body: bytes, headers: Mapping[str, str]) -> Answer:
    return Answer(status, json.loads(body) if body else None, headers)


class KeptConnection:
    """A way to a server that goes on running: one connection for all requests, which takes half of their CPU.

    Only for the thread that makes it. Requests of other threads have connections of their own.
    """

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._connection: HTTPConnection | None = None
        self._used = 0.0

    def __call__(self, method: str, url: str, body: object, seconds: float, headers: Mapping[str, str]) -> Answer:
        if threading.get_ident() != self._thread:
            return _over_its_own(method, url, body, seconds, headers)
        if time.monotonic() - self._used > _IDLE_S:
            self.close()
        address = urlsplit(url)
        if self._connection is None:
            self._connection = HTTPConnection(address.netloc, timeout=seconds)
        try:
            given = {"Content-Type": "application/json", **headers}
            self._connection.request(method, address._replace(scheme="", netloc="").geturl(), _encoded(body), given)
            with self._connection.getresponse() as response:
                answer = _answer(response.status, response.read(), dict(response.headers))
        except BaseException:
            self.close()  # nobody knows what would come next
            raise
        self._used = time.monotonic()
        return answer

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Command:
    """One `ojs-nats` process; what it prints goes to a file of its own."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        label: str = "ojs-nats",
        program: Sequence[str] = OJS_NATS,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.arguments = arguments
        self._output = folder / f"{label}.log"
        with self._output.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            files = (nothing.fileno(), output.fileno(), output.fileno())
            self.process = start([*program, *arguments], _printing_stacks() if env is None else env, files, folder)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of one event, decoded; only with `--log-format json`."""
        marked = (line for line in self.output.splitlines() if f'"{name}"' in line)  # of thousands, few are looked for
        lines = (json.loads(line) for line in marked if line.startswith("{") and line.endswith("}"))
        return [line for line in lines if line.get("event") == name]

    def ready(self) -> dict[str, Any]:
        """Wait for the process's own ready line and return it."""

        def announced() -> dict[str, Any] | None:
            assert self.process.poll() is None, f"{self.arguments} ended early:\n{self.output}"
            return next((line for line in self.events("ready") if line["instance"].endswith(f":{self.pid}")), None)

        found = until(announced, _READY_SECONDS)
        assert found is not None
        return found

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        end(self.process, signal.SIGKILL)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code. What doesn't end says where it hangs."""
        return end(self.process, number, explain=self._stacks)

    def _stacks(self) -> str:
        """Return the end of the output, with the stacks of this process and of those that descend from it."""
        for pid in family(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
        before = -1
        while len(self.output) != before:
            before = len(self.output)
            time.sleep(_PRINTED_S)
        return self.output[-_END:]


Job = dict[str, Any]
"""A job as an answer shows it."""


class Api:
    """Calls of a system's gateway."""

    observe: Callable[[str, str, Answer], None] | None = None
    """Sees method, path and answer of every request."""
    way: Way = staticmethod(_over_its_own)

    @property
    def url(self) -> str:
        """The gateway's address."""
        raise NotImplementedError

    @property
    def nats_url(self) -> str:
        """The address of its NATS."""
        raise NotImplementedError

    def request(self, method: str, path: str, body: object = None) -> Answer:
        """One request to the gateway; `path` begins with a slash."""
        answer = _sent_by(self.way, method, f"{self.url}{path}", body, PATIENCE_S, {})
        if self.observe is not None:
            self.observe(method, path, answer)
        return answer

    def call(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        """The body of the answer to a request below /ojs/v1, which has to have this status."""
        answer = self.request(method, f"/ojs/v1{path}", body)
        assert answer.status == status, answer
        return answer.body

    def push(self, job_type: str, *args: object, meta: object = None, **options: object) -> Job:
        """Push a job, which has to be taken as a new one, and return it."""
        body = {"type": job_type, "args": args, "options": options} | ({} if meta is None else {"meta": meta})
        job: Job = self.call("POST", "/jobs", body, 201)["job"]
        return job

    def fetch(self, *queues: str, **more: object) -> list[Job]:
        """Fetch from these queues, and return what came; `more` are further members of the request."""
        jobs: list[Job] = self.call("POST", "/workers/fetch", {"queues": queues, **more})["jobs"]
        return jobs

    def job(self, job_id: str) -> Job:
        """Return the job as the server has it."""
        job: Job = self.call("GET", f"/jobs/{job_id}")["job"]
        return job

    def put_record(self, key: str, body: bytes) -> None:
        """Write a record into the bucket by hand."""

        async def put() -> None:
            client = await nats.connect(self.nats_url)
            try:
                await client.jetstream().publish(f"$KV.ojs.{key}", body)
            finally:
                await client.close()

        asyncio.run(put())

    def reset(self) -> None:
        """Wipe everything; returns when that is done."""
        answer = self.request("POST", "/ojs/v1/admin/reset")
        assert answer.status < 300, answer


class Gateway(Api):
    """A gateway of which no more is known than its address."""

    def __init__(self, url: str) -> None:
        self._url = url

    @property
    def url(self) -> str:
        return self._url


class System(Command, Api):
    """`ojs-nats dev --test-mode` on free ports; `program` is another way to start `dev`."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (*OJS_NATS, "dev"),
        with_users: bool | None = None,
        shared: bool = False,
    ) -> None:
        """`shared` has some services in one process, as it is by default; else each has one of its own.

        `with_users` has a nats-server beside it, with the roles' users, as it is by default where tests run with users.

        Whoever tests what `dev` does with its own nats-server goes without.
        """
        self.data = folder / "data"
        beside = users.wanted() if with_users is None else with_users
        self._server = NatsServer(folder / "nats") if beside and "--nats" not in arguments else None
        if self._server is not None:
            self._server.start()
            arguments = ("--nats", self._server.url_by_role, *users.STORAGE, *arguments)
            given = environment() if env is None else env
            env = {**given, "OJS_NATS_API_URL": users.by_role(self._server.url, ANSWERING)}
        ports = ("--port", "0", "--nats-port", "0")
        options: tuple[str, ...] = ("--test-mode", *ports, "--data", str(self.data), "--log-format", "json")
        if TOGETHER not in arguments and not shared:
            options = (*options, "--apart")
        super().__init__(folder, *options, *arguments, env=env, label="dev", program=program)

    @classmethod
    @contextmanager
    def started(
        cls,
        folder: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (*OJS_NATS, "dev"),
        with_users: bool | None = None,
        shared: bool = False,
    ) -> Iterator[System]:
        """A running system; the processes that it left behind, if any, are killed at the end."""
        system = cls(folder, *arguments, env=env, program=program, with_users=with_users, shared=shared)
        try:
            system.wait_ready()
            yield system
        finally:
            pids = list(system.children.values()) if system.run_file.exists() else []
            system.stop()
            for pid in filter(runs, pids):
                os.kill(pid, signal.SIGKILL)
            if system._server is not None:
                system._server.stop()

    @property
    def run_file(self) -> Path:
        return self.data / "run.json"

    @property
    def state(self) -> dict[str, Any]:
        """What `dev` says about itself in run.json."""
        state: dict[str, Any] = json.loads(self.run_file.read_text(encoding="utf-8"))
        return state

    @property
    def url(self) -> str:
        return str(self.state["url"])

    @property
    def nats_url(self) -> str:
        return str(self.state["nats_url"]) if self._server is None else self._server.url

    @property
    def nats_url_by_role(self) -> str:
        """What commands are given, which have the users of their roles where tests run with users."""
        return self.nats_url if self._server is None else self._server.url_by_role

    @property
    def children(self) -> dict[str, int]:
        """Process ids by name: nats-server and the services."""
        children: dict[str, int] = self.state["children"]
        return children if self._server is None else children | {_NATS_SERVER: self._server.pid}

    def wait_ready(self) -> None:
        """Return when this process has everything running."""

        def everything_runs() -> bool:
            assert self.process.poll() is None, f"dev ended early:\n{self.output}"
            return self.run_file.exists() and self.state["pid"] == self.pid and self.state["ready"]

        until(everything_runs, _READY_SECONDS)

    def kill_child(self, name: str) -> int:
        """SIGKILL one of the children; returns the process id it had."""
        pid = self.children[name]
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_restarted(self, name: str, killed: int) -> int:
        """Wait until a child that was killed has been started again and is ready; returns its new process id."""

        def runs_again() -> int | None:
            pid = self.children.get(name)
            started = any(line["child"] == name and line["pid"] == pid for line in self.events("started again"))
            return pid if pid != killed and started else None

        pid = until(runs_again, _READY_SECONDS)
        assert pid is not None
        return pid

    def restart(self, *names: str) -> None:
        """Kill some children at one moment; returns when `dev` has started all of them again."""
        pids = {name: self.kill_child(name) for name in names}
        for name, pid in pids.items():
            self.wait_restarted(name, pid)


class Processes:
    """Services as processes of their own, in any number, on one NATS server that the test owns."""

    def __init__(
        self,
        folder: Path,
        nats_url: str,
        *,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = OJS_NATS,
        with_users: bool | None = None,
    ) -> None:
        """`with_users` has each service work as its role's user, as it is by default where tests run with users."""
        self._with_users = users.wanted() if with_users is None else with_users
        self.folder = folder
        self.nats_url = nats_url
        self._env = env
        self._program = program
        self.commands: list[Command] = []

    def start(
        self, service: str, *arguments: str, nats_url: str | None = None, program: Sequence[str] | None = None
    ) -> Command:
        """Start one more of a service, which isn't ready yet (`Command.ready`).

        `nats_url` is its own way to NATS, `program` its own way to be started.
        """
        ports = ("--port", "0") if service == "gateway" else ()
        options = (
            *users.options(nats_url or self.nats_url, service, with_users=self._with_users),
            "--test-mode",
            "--log-format",
            "json",
        )
        label = f"{service}-{len(self.commands)}"
        given = (*options, *ports, *arguments)
        command = Command(self.folder, service, *given, env=self._env, label=label, program=program or self._program)
        self.commands.append(command)
        return command

    @classmethod
    @contextmanager
    def two_of_each(cls, folder: Path, nats_url: str, *arguments: str, gateway: Sequence[str] = ()) -> Iterator[list[str]]:
        """Two processes of every service, ready; yields the addresses of the two gateways. `gateway` is for these alone."""
        started = cls(folder, nats_url)
        try:
            for entry in SERVICES:
                for number in (1, 2):
                    own = {"projector": ("--projector-data", str(folder / f"index-{number}")), "gateway": gateway}
                    started.start(entry.name, *own.get(entry.kind, ()), *arguments)
            ready = [command.ready() for command in started.commands]
            yield [str(line["url"]) for line in ready if line["service"] == "gateway"]
        finally:
            started.stop()

    def stop(self) -> None:
        """Stop all that still run."""
        for command in self.commands:
            if command.process.poll() is None:
                command.process.terminate()
        for command in self.commands:
            command.stop()


class Services(Api):
    """Each service, or those with these names, as one forked process beside a NATS server of their own, ready.

    It takes a third of the CPU that `ojs-nats dev` takes, which starts its children. Nothing is started again by itself.
    """

    def __init__(self, processes: Processes, server: NatsServer, names: Sequence[str], arguments: Sequence[str]) -> None:
        self._processes = processes
        self._server = server
        self._port = free_port()
        self._arguments = arguments
        self.running: dict[str, Command] = {}
        """By the names of the services."""
        self.urls: dict[str, str] = {}
        self._start(names)

    @classmethod
    @contextmanager
    def started(
        cls,
        folder: Path,
        *names: str,
        env: Mapping[str, str] | None = None,
        server: NatsServer | None = None,
        arguments: Sequence[str] = (),
        program: Sequence[str] = OJS_NATS,
    ) -> Iterator[Services]:
        """All of them, stopped at the end. `server` is one that others use, too; each service is given the `arguments`.

        `program` is another way to start a service.
        """
        with ExitStack() as stack:
            nats_server = server or stack.enter_context(NatsServer(folder / "nats"))
            processes = Processes(folder / "services", nats_server.url, env=env, program=program)
            stack.callback(processes.stop)
            yield cls(processes, nats_server, names or [entry.name for entry in SERVICES], arguments)

    @property
    def url(self) -> str:
        return self.urls["gateway"]

    @property
    def nats_url(self) -> str:
        return self._processes.nats_url

    @property
    def children(self) -> dict[str, int]:
        """Process ids by name: nats-server and the services."""
        return {_NATS_SERVER: self._server.pid, **{name: command.pid for name, command in self.running.items()}}

    @property
    def output(self) -> str:
        """What all services have said, those that have ended included."""
        return "".join(command.output for command in self._processes.commands)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The log lines of one event, of all services that there ever were."""
        return [line for command in self._processes.commands for line in command.events(name)]

    def stop(self, name: str) -> int:
        """Ask a service to end; returns its exit code."""
        return self.running[name].stop()

    def restart(self, *names: str) -> None:
        """Kill some, nats-server too, at one moment, and start them again; returns when all are ready.

        Who has ended is started again, too. A gateway keeps its address.
        """
        services = [name for name in names if name != _NATS_SERVER]
        for name in services:
            self.running[name].process.kill()
        if _NATS_SERVER in names:
            self._server.restart()
        for name in services:
            self.running[name].kill()
        self._start(services)

    def _start(self, names: Sequence[str]) -> None:
        for name in names:
            port = ("--port", str(self._port)) if name == "gateway" else ()
            self.running[name] = self._processes.start(name, *port, *self._arguments)
        self.urls |= {name: str(self.running[name].ready()["url"]) for name in names}
