from __future__ import annotations

import gc
import os
import random
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isinf
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from execnet.xspec import XSpec

from support import forked, process_state, users
from support.collected import Forks
from support.examples import WHOLE, amount, examples
from support.nats import NatsServer
from support.processes import family
from support.system import Processes

# How fast examples are drawn is the machine's affair. A gate is to fail for what a change does, not for what it happens to
# draw: where many are tried, they are the same each time. Elsewhere they are drawn anew; what fails is printed as a blob, and
# the seed stands in the header.
hypothesis.settings.register_profile(
    "ojs",
    deadline=None,
    print_blob=True,
    derandomize=amount() == "many",
    max_examples=examples(WHOLE),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("ojs")

pytest_plugins = ["support.failures"]

_FORKS = pytest.StashKey[Forks]()
_ACCEPTANCE = Path(__file__).parent / "acceptance"
_UNIT = Path(__file__).parent / "unit"

# Set by .ci/run: so many seconds of CPU may a test take that isn't marked `slow` or `faults`.
MOST_CPU_S = float(os.environ.get("OJS_MOST_CPU_S", "inf"))


# With rich installed, as a tool of lint brings it, structlog's own way to show a traceback takes seconds each.
structlog.configure(
    processors=[
        *structlog.get_config()["processors"][:-1],
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three tests at a time for each processor, since most wait most of the time; four with those that are slow, by waiting."""
    return min((3 if config.option.markexpr else 4) * (os.cpu_count() or 1), 8)


def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[XSpec]) -> None:
    """Fork the processes of pytest-xdist from one that has collected the tests, unless coverage starts with them."""
    if any(name.startswith("COVERAGE") for name in os.environ):
        return
    forks = config.stash[_FORKS] = Forks(config)
    for spec in specs:
        if spec.popen and not spec.python:
            spec.python = forks.python


def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist the order of the tests, and where those of the product are forked."""
    node.workerinput["order"] = node.config.option.order
    forks = node.config.stash.get(_FORKS, None)
    if forks is not None:
        node.workerinput["forks"] = forks.product


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nats-users", action="store_true", help="each service has a NATS user of its own, with its role's rights"
    )
    parser.addoption(
        "--order", metavar="SEED", help="order of the unit tests: the seed of an earlier run, or `fixed` [a random one]"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--nats-users"):
        os.environ[users.VARIABLE] = "1"  # the processes of pytest-xdist inherit it
    given = getattr(config, "workerinput", {})
    config.option.order = given.get("order") or config.option.order or str(random.SystemRandom().getrandbits(32))
    if (forks := given.get("forks")) is not None:
        forked.share(forks)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"hypothesis: OJS_EXAMPLES={amount()}, --hypothesis-seed={config.option.hypothesis_seed or 'random'}",
        f"the order of the unit tests again: --order={config.option.order}",
    ]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without looking for garbage, and never look at thousands of tests for some again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the files, so that what computes runs beside what waits.

    The acceptance tests come first, by a checksum of their names: by the names those of the browser are beside each other, as
    are those of the worker. Files of fault tests are spread among all others: two at once have too little of the machine.
    Files of unit tests, and the tests in each, come in a random order: none depends on one before it.
    """
    files: dict[Path, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    files = dict(sorted(files.items(), key=_place))
    if config.option.order != "fixed":
        files = _shuffled(files, random.Random(config.option.order))
    faults = [path for path, tests in files.items() if tests[0].get_closest_marker("faults")]
    others = [path for path in files if path not in set(faults)]
    order = others.copy()
    for number, path in reversed(list(enumerate(faults))):
        order.insert(number * len(others) // len(faults), path)
    items[:] = [item for path in order for item in files[path]]


def _place(file: tuple[Path, list[pytest.Item]]) -> tuple[bool, int]:
    path, _ = file
    first = _ACCEPTANCE in path.parents
    return not first, zlib.crc32(path.name.encode()) if first else 0


def _shuffled(files: Mapping[Path, list[pytest.Item]], chance: random.Random) -> dict[Path, list[pytest.Item]]:
    units = [path for path in files if _UNIT in path.parents]
    mixed = iter(chance.sample(units, len(units)))
    order = [(next(mixed), True) if _UNIT in path.parents else (path, False) for path in files]
    return {path: chance.sample(files[path], len(files[path])) if mix else files[path] for path, mix in order}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that takes too much of the processors for the daily run; a random one takes what its examples take."""
    if isinf(MOST_CPU_S) or any(item.get_closest_marker(name) for name in ("slow", "faults", "hypothesis")):
        return (yield)
    read = _own_s if _UNIT in item.path.parents else _used_s
    before, began = read(), time.monotonic()
    yield
    if (time.monotonic() - began) * (os.cpu_count() or 1) < MOST_CPU_S:
        return  # it can't have taken so much
    if (used := read() - before) > MOST_CPU_S:
        pytest.fail(f"it took {used:.1f} s of CPU, {MOST_CPU_S:g} are the limit: make it cheaper, or mark it slow")


def _used_s() -> float:
    """What all processes have used. It takes 7 ms, since it reads all of /proc."""
    return sum(family(os.getpid()).values())


def _own_s() -> float:
    """What this process has used, and those that it started and waited for: a unit test has no others."""
    return sum(os.times()[:4])


def _kept() -> Iterator[None]:
    before = process_state.Taken()
    yield
    if left := before.restore():
        pytest.fail(process_state.told(left), pytrace=False)


@pytest.fixture(autouse=True)
def _leaves_no_state() -> Iterator[None]:
    """Fail a test that leaves logging, environment, signals or the like changed: later ones would depend on it."""
    yield from _kept()


@pytest.fixture(autouse=True, scope="module")
def _module_leaves_no_state() -> Iterator[None]:
    """Hold the fixtures that a file's tests share to the same."""
    yield from _kept()


@pytest.fixture
def logging_kept() -> Iterator[None]:
    """Logging is as before once the test has ended, which may configure it."""
    yield from _put_back(process_state.LOGGING)


@pytest.fixture
def signals_kept() -> Iterator[None]:
    """Signals are handled as before once the test has ended."""
    yield from _put_back(process_state.SIGNALS)


def _put_back(parts: Iterable[process_state.Part]) -> Iterator[None]:
    before = process_state.Taken(parts)
    yield
    before.restore()


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A NATS server of the test's own, which it may kill and restart."""
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture(scope="session")
def shared_nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server for all tests of this process, which leave it running and keep apart by their module's `namespace`."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def processes(tmp_path: Path, nats_server: NatsServer) -> Iterator[Processes]:
    """Services as separate processes beside a NATS server of the test's own."""
    started = Processes(tmp_path / "processes", nats_server.url)
    try:
        yield started
    finally:
        started.stop()
