"""The sites, notebook and tests of docs/examples/frameworks, as somebody runs them: jobs arrive, and nothing warns."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.system import System, environment, send
from support.waiting import until

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "frameworks"
STRICT = (sys.executable, "-W", "error", "-W", "ignore:unclosed <socket:ResourceWarning")
"""Every warning is an error, but that of the sockets that gunicorn's workers inherit, and listen on."""
SITES = {
    "FastAPI": ("uvicorn", "fastapi_site:site"),
    "Litestar": ("uvicorn", "litestar_site:site"),
    "Django under ASGI": ("uvicorn", "django_site:asgi"),
    "Django under WSGI": ("gunicorn", "django_site:wsgi", "--workers", "2"),
    "Django under WSGI, forked behind its import": ("gunicorn", "django_site:wsgi", "--workers", "2", "--preload"),
    "Flask": ("gunicorn", "flask_site:site", "-c", "flask_gunicorn.py"),
    "Flask with threads": ("gunicorn", "flask_site:site", "-c", "flask_gunicorn.py", "--threads", "3"),
    "Flask with gevent": ("gunicorn", "flask_site:site", "-c", "gevent_gunicorn.py"),
    "Flask with gevent, which gunicorn patches": ("gunicorn", "flask_site:site", "--worker-class", "gevent"),
}
BY_NATS = {"Flask", "Flask with gevent"}
HOOKS = {"import@example.org": 1, "forked@example.org": 3, "exited@example.org": 3}
"""What Flask pushes besides requests, with a configuration that has hooks."""
TESTS = {"test_fastapi_site.py": 4, "test_with_asyncio.py": 5, "test_with_anyio.py": 2}
KERNEL = """\
import ast, asyncio, inspect, json
from pathlib import Path

async def main():
    names = {}
    for cell in json.loads(Path("notebook.ipynb").read_text())["cells"]:
        code = compile("".join(cell["source"]), "notebook", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        made = eval(code, names)
        if inspect.isawaitable(made):
            await made
    print(names["handle"].id == names["same"].id, names["same"].state)

asyncio.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    copied = tmp_path / "frameworks"
    shutil.copytree(EXAMPLES, copied)
    return copied


@contextmanager
def served(command: tuple[str, ...], folder: Path, url: str, port: int) -> Iterator[str]:
    """The address of a site, which has said nothing when it ends."""
    module, *arguments = command
    place = ("--port", str(port)) if module == "uvicorn" else ("--bind", f"127.0.0.1:{port}")
    said, base = folder / "site.log", f"http://127.0.0.1:{port}"
    with said.open("wb") as log:
        site = subprocess.Popen(
            [*STRICT, "-m", module, *arguments, *place, "--log-level", "warning"],
            cwd=folder,
            env=environment(OJS_URL=url),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def answers() -> bool:
        assert site.poll() is None, said.read_text()
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            return False
        return True

    try:
        until(answers)
        yield base
    finally:
        site.terminate()
        code = site.wait(timeout=60)
    assert (said.read_text(), code in {0, -signal.SIGTERM}) == ("", True)


@pytest.mark.parametrize(
    ("name", "way"), [*((name, "HTTP") for name in SITES), *((name, "NATS") for name in SITES if name in BY_NATS)]
)
def test_jobs_of_a_site_arrive(system: System, folder: Path, unused_tcp_port: int, name: str, way: str) -> None:
    url = system.url if way == "HTTP" else system.nats_url
    emails = [f"{number}@example.org" for number in range(8)]
    with served(SITES[name], folder, url, unused_tcp_port) as base:
        for email in emails:
            pushed = send("POST", f"{base}/members?email={email}")
            assert pushed.status == 202
            found = send("GET", f"{base}/jobs/{pushed.body['job']}")
            assert found.body == {"type": "welcome.send", "state": "available"}
    hooks = HOOKS if "-c" in SITES[name] else {"import@example.org": 1} if "flask_site:site" in SITES[name] else {}
    arrived = [job["args"][0] for job in system.fetch("mail", count=100)]
    assert Counter(arrived) == Counter(dict.fromkeys(emails, 1) | hooks)


def test_views_of_fastapi_in_threads_push(system: System, folder: Path, unused_tcp_port: int) -> None:
    with served(SITES["FastAPI"], folder, system.url, unused_tcp_port) as base:
        pushed = send("POST", f"{base}/plain/members?email=ada@example.org")
    assert [job["id"] for job in system.fetch("mail", count=9)] == [pushed.body["job"]]


@pytest.mark.parametrize("name", [name for name in SITES if name.startswith("Django")][:2])
def test_django_pushes_nothing_that_is_rolled_back(system: System, folder: Path, unused_tcp_port: int, name: str) -> None:
    with served(SITES[name], folder, system.url, unused_tcp_port) as base:
        refused = send("POST", f"{base}/members?email=nobody")
        assert (refused.status, refused.body["pushed"]) == (400, [])
        again = send("POST", f"{base}/members?email=ada@example.org")
    assert [job["id"] for job in system.fetch("mail", count=9)] == [again.body["job"]]


@pytest.mark.parametrize("way", ["HTTP", "NATS"])
def test_the_cells_of_a_notebook_run_in_a_loop(system: System, folder: Path, way: str) -> None:
    env = environment(OJS_URL=system.url if way == "HTTP" else system.nats_url)
    command = [sys.executable, "-W", "error", "-c", KERNEL]
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert (ran.stdout, ran.stderr) == ("True available\n", "")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_tests_of_applications_pass(folder: Path, processes: str) -> None:
    plugins = ("ojs_nats.testing.plugin", "pytest_asyncio.plugin", "anyio", "xdist.plugin", "no:cacheprovider")
    options = [word for name in plugins for word in ("-p", name)]
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", *options, "--numprocesses", processes, *TESTS]
    env = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTHONPATH=os.pathsep.join([str(folder), *sys.path]))
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=280, check=False)
    assert f"{sum(TESTS.values())} passed" in ran.stdout, ran.stdout + ran.stderr
    assert ran.stderr == ""


def test_every_file_of_the_folder_is_run() -> None:
    modules = {word.partition(":")[0] + ".py" for command in SITES.values() for word in command if ":" in word}
    configurations = {word for command in SITES.values() for word in command if word.endswith(".py")}
    others = {"jobs.py", "notebook.ipynb", "pytest.ini", "README.md"}
    found = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert found == {*modules, *configurations, *TESTS, *others}
