"""Job libraries drain a queue of jobs that do nothing, in turn, on this machine: `python -m bench.libraries --help`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Final

from bench.libraries.libraries import CONTENDERS, Contender
from bench.libraries.servers import Missing, served

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
_PATIENCE_S: Final = 180.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.libraries", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which [all]: {', '.join(each.name for each in CONTENDERS)}")
    parser.add_argument("--jobs", type=int, default=20_000, help="[20000]")
    parser.add_argument("--concurrency", default="10,100", help="jobs at a time, one run for each [10,100]")
    parser.add_argument("--rounds", type=int, default=3, help="all of them, then all of them again [3]")
    parser.add_argument("--environment", type=Path, default=ROOT / "build" / "libraries", help="where the others are installed")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    given = parser.parse_args()
    chosen = [each for each in CONTENDERS if not given.names or each.name in given.names]
    pythons = {each.name: _environment(given.environment / each.name.partition(",")[0], each) for each in chosen}
    figures: dict[tuple[str, int], list[float]] = {}
    for _ in range(given.rounds):
        for concurrency in map(int, given.concurrency.split(",")):
            for contender in chosen:
                try:
                    rate = _drained(contender, given.jobs, concurrency, pythons[contender.name])
                except Missing as problem:
                    print(f"{contender.name}: left out, {problem}", flush=True)
                    continue
                print(f"{contender.name:<16} {concurrency:>4} at a time  {rate:>8,.0f} jobs/s", flush=True)
                figures.setdefault((contender.name, concurrency), []).append(rate)
    print(_table(figures))
    if given.json:
        rows = [{"name": name, "concurrency": count, "rates": rates} for (name, count), rates in figures.items()]
        given.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    return 0


def _environment(folder: Path, contender: Contender) -> Path:
    """A Python of its own for the library, in its newest version: they don't agree on the clients that they need. This project
    is what runs this.
    """
    if contender.needs == "ojs-nats":
        return Path(sys.executable)
    python, installed = folder / "bin" / "python", folder / "installed"
    if installed.exists():
        return python
    venv.create(folder, with_pip=True)
    if contender.packages:
        subprocess.run([python, "-m", "pip", "install", "--quiet", *contender.packages], check=True)
    if contender.name == "bullmq":
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--prefix", folder, "bullmq", "ioredis"], check=True)
    installed.touch()
    return python


def _drained(contender: Contender, jobs: int, concurrency: int, python: Path) -> float:
    """Jobs a second, from the first to the last."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "server"
        folder.mkdir()
        Path(scratch).chmod(0o755)
        done = Path(scratch) / "done"
        with served(contender.needs, folder) as found:
            program, run = _commands(contender, concurrency, python)
            env = {
                **os.environ,
                **found,
                **{name: value.format(**found) for name, value in contender.env},
                "JOBS": str(jobs),
                "CONCURRENCY": str(concurrency),
                "DONE": str(done),
                "PYTHONPATH": os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", ""))),
                "PATH": os.pathsep.join((str(python.parent), os.environ["PATH"])),
            }
            subprocess.run([*program, "push", str(jobs)], check=True, env=env, cwd=HERE, capture_output=True)
            time.sleep(2)  # what servers do behind a push ends
            worker = subprocess.Popen(run, env=env, cwd=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                _wait(worker, done)
            finally:
                worker.send_signal(signal.SIGTERM)
                try:
                    worker.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()
        return (jobs - 1) / float(done.read_text(encoding="utf-8"))


def _commands(contender: Contender, concurrency: int, python: Path) -> tuple[list[str], list[str]]:
    run = contender.worker(concurrency)
    if contender.name == "bullmq":
        script = python.parent.parent / "bullmq.mjs"  # node looks for packages beside it
        shutil.copy(HERE / "contenders" / "bullmq.mjs", script)
        return ["node", str(script)], ["node", str(script), "work"]
    if contender.needs == "ojs-nats":
        return [sys.executable, "-m", "contenders.ojs"], [sys.executable, "-m", "ojs_command", *run[1:]]
    return [str(python), "-m", f"contenders.{contender.name.partition(',')[0]}"], [str(python.parent / run[0]), *run[1:]]


def _wait(worker: subprocess.Popen[bytes], done: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not done.exists() or not done.read_text(encoding="utf-8"):
        if worker.poll() is not None:
            raise RuntimeError(f"{worker.args!r} has ended with {worker.returncode}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"{worker.args!r} hasn't done its jobs after {_PATIENCE_S:.0f} s")
        time.sleep(0.05)


def _table(figures: dict[tuple[str, int], list[float]]) -> str:
    lines = ["", "| library | at a time | jobs/s, median | lowest to highest | to ours |", "| --- | --- | --- | --- | --- |"]
    for (name, concurrency), rates in figures.items():
        middle = statistics.median(rates)
        ours = statistics.median(figures.get(("ojs", concurrency), [middle]))
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        lines.append(f"| {name} | {concurrency} | {middle:,.0f} | {spread} | {middle / ours:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
