from __future__ import annotations

import os
import signal
import subprocess
import sys

from bench.processes import GENERATOR, Meter, descendants, parse_busy, parse_cpu

TICK = 1 / os.sysconf("SC_CLK_TCK")


def test_cpu_time_is_found_behind_any_command_name() -> None:
    rest = " S 1 1 1 0 -1 4194560 1 2 3 4 250 50 9 9 20 0 1 0 100 1000 10"
    assert parse_cpu("12 (python)" + rest) == 300 * TICK
    assert parse_cpu("12 (a) b (c))" + rest) == 300 * TICK


def test_waiting_for_disks_and_guests_is_not_busy() -> None:
    assert parse_busy("cpu  1 2 4 1000 2000 8 16 32 0 0\ncpu0 1 2 4 8 16 32 64 0 0 0\n") == 63 * TICK


def test_the_meter_reads_itself_and_names_what_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        meter = Meter({"child": child.pid})
        before = meter.read()
        assert set(before.cpu_s) == {"child", GENERATOR}
        assert child.pid in descendants(os.getpid(), {}).values()
        child.kill()
    spent = meter.spent(before)
    assert spent.gone == ["child"]
    assert set(spent.processes) == {GENERATOR}
    assert spent.processes[GENERATOR].rss_mib > 1
    assert spent.processes[GENERATOR].cpu_s >= 0


def test_what_a_named_process_has_started_is_named_after_it() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = descendants(os.getpid(), {"gateway": child.pid})
        [grandchild] = [name for name in found if name.startswith("gateway")]
        assert grandchild == f"gateway-{found[grandchild]}"
        assert child.pid not in found.values()
        os.kill(found[grandchild], signal.SIGKILL)
