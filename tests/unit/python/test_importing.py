"""What is imported when it is needed: where a process may fork, or end, meanwhile."""

from __future__ import annotations

import subprocess
import sys

PUSHES = """\
import sys
from ojs_nats import App
from ojs_nats.errors import UnavailableError

app = App("http://127.0.0.1:1", retry_for="0s")


@app.job("f.push")
def one() -> None: ...


def push(who: str) -> None:
    try:
        one.push_sync()
    except UnavailableError:
        print(who, "is answered by nobody", flush=True)
"""
FORKS = """
import importlib.abc, os, signal, threading

signal.alarm(60)  # whatever hangs ends
importing, forking = threading.Event(), threading.Event()


class Finder(importlib.abc.MetaPathFinder):
    '''Begins to import aiohttp, and goes on when the main thread is about to fork.'''

    def find_spec(self, name, path, target=None):
        if name == "aiohttp" and not importing.is_set():
            importing.set()
            forking.wait(30)


sys.meta_path.insert(0, Finder())
thread = threading.Thread(target=push, args=["the parent"])
thread.start()
importing.wait(30)
os.register_at_fork(before=forking.set)
child = os.fork()
if child == 0:
    signal.alarm(20)
    push("the child")
    os._exit(0)
_, status = os.waitpid(child, 0)
thread.join()
print(status)
"""
ENDS = """
import atexit

atexit.register(push, "an end")
"""


def said(program: str) -> list[str]:
    warnings = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")  # that it forks beside threads
    command = [sys.executable, *warnings, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stderr
    return sorted(ran.stdout.splitlines())


def test_a_child_that_is_forked_during_an_import_does_not_wait_for_it() -> None:
    assert said(PUSHES + FORKS) == ["0", "the child is answered by nobody", "the parent is answered by nobody"]


def test_the_first_push_of_a_process_may_be_a_handler_of_its_end() -> None:
    assert said(PUSHES + ENDS) == ["an end is answered by nobody"]
