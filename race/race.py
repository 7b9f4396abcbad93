"""Twin against other simulators: the same model, the same mean, then CPU time per request.

Nobody's speed is quoted before its mean time in system is within 1 % of the exact one, which comes
from value iteration (``twin optimum``). Contenders run one after another, all of them once per round,
and what is compared is user and system time of the whole program, median over rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOAD = 0.7
STRATEGY = "weighted-least-request"
TOLERANCE = 0.01


@dataclass(frozen=True)
class Contender:
    """One simulator: what it is, its program, and how many requests take it some seconds."""

    name: str
    how: str
    program: tuple[str, ...]
    requests: int

    def command(self, requests: int, seed: int) -> list[str]:
        """The command line of one run."""
        if self.name == "twin":
            flags = f"--strategy {STRATEGY} --load {LOAD} --mean-service 1s --json"
            flags += f" --requests {requests} --seed {seed} {self.how}"
            return [*self.program, "run", *flags.split()]
        return [*self.program, str(requests), str(LOAD), str(seed)]


def contenders(twin: Path, racers: Path) -> list[Contender]:
    """Everybody whose program is there; who is missing is said."""
    python = sys.executable
    simgrid = racers / "simgrid"
    found = [
        Contender("twin", "--discipline fcfs", (str(twin),), 20_000_000),
        Contender("twin", "--discipline ps", (str(twin),), 20_000_000),
        Contender("simcore", "one component", (str(racers / "simcore"),), 20_000_000),
        Contender(
            "simcore", "balancer and stations", (str(racers / "simcore-components"),), 20_000_000
        ),
        Contender("nexosim", "one model, one thread", (str(racers / "nexosim"),), 2_000_000),
        Contender(
            "SimPy", "a process per request", (python, str(HERE / "simpy_model.py")), 1_000_000
        ),
        Contender("Ciw", "a custom router", (python, str(HERE / "ciw_model.py")), 400_000),
    ]
    if simgrid.exists():
        how = "an actor per request, processor sharing"
        found.append(Contender("SimGrid", how, (str(simgrid),), 1_000_000))
    else:
        print("SimGrid is not installed (Debian: libsimgrid-dev); it does not run\n")
    for contender in found:
        if not shutil.which(contender.program[0]):
            sys.exit(f"error: {contender.program[0]} is missing; next: make race-twin builds it")
    return found


def processor() -> str:
    """The processor as the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return f"{line.split(':')[1].strip()}, {os.cpu_count()} cores"
    return platform.machine()


def run(command: list[str]) -> tuple[dict, float]:
    """What a program printed, and its CPU seconds."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"error: exit code {child.returncode} of {' '.join(command)}")
        output.seek(0)
        return json.loads(output.read()), usage.ru_utime + usage.ru_stime


def mean_of(printed: dict) -> float:
    """Mean time in system in mean sizes."""
    return printed["mean"] if "mean" in printed else printed["mean_over_service"]


def main() -> int:
    """Runs the race and prints the table; exit code 1 if a mean is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--twin", type=Path, required=True, help="the release program of the twin")
    parser.add_argument("--racers", type=Path, required=True, help="folder of the others' programs")
    parser.add_argument("--rounds", type=int, default=3, help="1..20 (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="times as many requests each")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if not 1 <= given.rounds <= 20 or not 0.001 <= given.scale <= 100:
        parser.error("--rounds must be 1..20 and --scale 0.001..100")

    optimum = [str(given.twin), "optimum", "--load", str(LOAD), "--json"]
    rows = run(optimum)[0]["rows"].values()
    exact = next(r["mean_over_service"] for r in rows if r["strategy"] == STRATEGY)
    field = contenders(given.twin, given.racers)
    print(
        f"three stations of 4, 3 and 2 servers, Poisson arrivals at load {LOAD}, exponential sizes,"
    )
    print(f"least (n + 1)/servers; exact mean {exact:.5f} sizes; on {processor()}\n")

    seconds: list[list[float]] = [[] for _ in field]
    means: list[float] = [0.0] * len(field)
    sizes = [max(1000, round(c.requests * given.scale)) for c in field]
    for number in range(given.rounds):
        for i, contender in enumerate(field):
            print(f"round {number + 1}: {contender.name:10}", end="\r", file=sys.stderr, flush=True)
            printed, spent = run(contender.command(sizes[i], given.seed))
            seconds[i].append(spent / sizes[i])
            means[i] = mean_of(printed)

    base = statistics.median(seconds[0])
    missed = 0
    head = (
        "simulator",
        "how",
        "requests",
        "mean",
        "off by",
        "CPU ns/request",
        "requests/s",
        "of twin",
    )
    layout = "{:9} {:40} {:>10} {:>8} {:>8} {:>15} {:>11} {:>8}"
    print(layout.format(*head))
    for i, contender in enumerate(field):
        off = means[i] / exact - 1
        each = statistics.median(seconds[i])
        speed = (f"{each * 1e9:.0f}", f"{1 / each:,.0f}", f"{base / each:.4f}")
        if abs(off) > TOLERANCE:
            missed += 1
            speed = ("-", "-", "mean off")
        row = (contender.name, contender.how, sizes[i], f"{means[i]:.5f}", f"{off:+.2%}", *speed)
        print(layout.format(*row))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
