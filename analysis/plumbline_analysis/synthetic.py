"""Makes result folders without a testbed: for tests, and to try the notebooks on.

The rows come from an exact processor-sharing model of the workers (each of n requests on c cores
progresses at min(1, c/n)), driven at the paper's pace, with small seeded jitter in place of a
machine. The manifest says ``synthetic`` wherever a real one names machine and build, so that such
a folder is never mistaken for a measurement.

When not to use: for any claim. The twin is the model to argue from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .rows import COLUMNS

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
NOUNS = ("users", "orders", "payments", "items", "carts", "reviews", "stock", "prices")
MS_PER_NS = 1e-6


@dataclass(frozen=True)
class Scenario:
    """What to make."""

    strategies: tuple[str, ...] = ("round-robin", "smooth-weighted-round-robin")
    blocks: int = 6
    requests: int = 400
    apis: int = 20
    seed: int = 1
    gap_ms: float = 10.0
    cores: tuple[int, ...] = (4, 3, 2)
    mips_per_core: float = 7450.0
    warmup_share: float = 0.2
    jitter: float = 0.004
    """Standard deviation of a run's common speed factor: what a machine would do."""
    error_share: float = 0.0
    poll_ms: float = 100.0
    flags: tuple[str, ...] = field(default=("emulated", "synthetic"))


def write_folder(folder: Path, scenario: Scenario = Scenario()) -> Path:
    """Writes manifest.json, workload.json and rows.csv; the same scenario gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(scenario.seed)
    apis = _apis(scenario, rng)
    schedule = rng.permutation(np.repeat(np.arange(len(apis)), -(-scenario.requests // len(apis))))
    schedule = schedule[: scenario.requests]
    arms, lines = [], [",".join(COLUMNS)]
    for block in range(1, scenario.blocks + 1):
        labels = [*scenario.strategies, f"aa:{scenario.strategies[0]}"]
        for position, place in enumerate(rng.permutation(len(labels)), start=1):
            run_id = f"b{block:02}-a{position}"
            rows = _run(scenario, run_id, block, labels[place], apis, schedule, rng)
            lines += rows
            arms.append(_arm(run_id, block, position, labels[place], len(rows)))
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write_json(folder / "manifest.json", _manifest(folder.name, scenario, arms, apis))
    _write_json(folder / "workload.json", _workload(scenario, apis))
    return folder


def _apis(scenario: Scenario, rng: np.random.Generator) -> list[dict]:
    apis = []
    for place in range(scenario.apis):
        size = 0.0
        while not 250 <= size <= 750:
            size = float(rng.lognormal(np.log(395), 0.25))
        url = "/" + "/".join(rng.choice(NOUNS, 3, replace=False))
        apis.append(
            {
                "id": f"api-{place + 1:03}",
                "method": str(rng.choice(METHODS)),
                "url": url,
                "task_size_mi": round(size, 2),
            }
        )
    return apis


def _run(scenario, run_id, block, label, apis, schedule, rng) -> list[str]:
    speed = scenario.mips_per_core / 1000 * float(np.exp(rng.normal(0, scenario.jitter)))
    workers = [_Worker(c, speed) for c in scenario.cores]
    pick = _Pick(label.removeprefix("aa:"), scenario.cores, scenario.poll_ms)
    late_ms = np.minimum(rng.exponential(0.05, len(schedule)), 5)
    chosen, seen = [], []
    for seq in range(len(schedule)):
        now = seq * scenario.gap_ms + late_ms[seq]
        for worker in workers:
            worker.advance(now)
        choice, known = pick(now, workers)
        workers[choice].add(seq, now, apis[schedule[seq]]["task_size_mi"])
        chosen.append(choice)
        seen.append(known)
    for worker in workers:
        worker.advance(float("inf"))
    done = {seq: at for worker in workers for seq, at in worker.done.items()}
    warmup = int(scenario.warmup_share * len(schedule))
    fails = rng.random(len(schedule)) < scenario.error_share
    return [
        _line(scenario, run_id, block, label, seq, apis[schedule[seq]], chosen[seq], seen[seq], late_ms[seq], done[seq],
              seq < warmup, bool(fails[seq]))
        for seq in range(len(schedule))
    ]  # fmt: skip


class _Worker:
    """PS(c) by walking all requests at each event: slow and plain."""

    def __init__(self, cores: int, speed_mi_per_ms: float):
        self.cores, self.speed = cores, speed_mi_per_ms
        self.now = 0.0
        self.left: dict[int, float] = {}
        self.done: dict[int, float] = {}

    def advance(self, to: float) -> None:
        while self.left:
            rate = self.speed * min(1.0, self.cores / len(self.left))
            seq = min(self.left, key=lambda s: (self.left[s], s))
            end = self.now + self.left[seq] / rate
            if end > to:
                for other in self.left:
                    self.left[other] -= (to - self.now) * rate
                break
            gone = self.left[seq]
            self.left = {s: x - gone for s, x in self.left.items() if s != seq}
            self.done[seq], self.now = end, end
        self.now = to

    def add(self, seq: int, now: float, mi: float) -> None:
        self.now = now
        self.left[seq] = mi


class _Pick:
    """The few strategies the fixtures need; ``polled`` is the paper's herd without its model."""

    def __init__(self, name: str, cores: tuple[int, ...], poll_ms: float):
        self.name, self.cores, self.poll_ms = name, cores, poll_ms
        self.turn = 0
        self.credit = [0] * len(cores)
        self.board = [0] * len(cores)
        self.polled_at = -poll_ms

    def __call__(self, now: float, workers: list[_Worker]) -> tuple[int, tuple[int, int, float]]:
        if now - self.polled_at >= self.poll_ms:
            self.polled_at = now - now % self.poll_ms
            self.board = [len(w.left) for w in workers]
        choice = self._choose(workers)
        return choice, (len(workers[choice].left), self.board[choice], now - self.polled_at)

    def _choose(self, workers: list[_Worker]) -> int:
        places = range(len(workers))
        if self.name == "smooth-weighted-round-robin":
            self.credit = [have + c for have, c in zip(self.credit, self.cores, strict=True)]
            best = max(places, key=lambda i: self.credit[i])
            self.credit[best] -= sum(self.cores)
            return best
        if self.name == "weighted-least-request":
            return min(places, key=lambda i: (len(workers[i].left) + 1) / self.cores[i])
        if self.name in ("polled", "plb-paper"):
            return min(places, key=lambda i: (self.board[i] + 1) / self.cores[i])
        self.turn += 1
        if self.name == "overload-c":
            return len(workers) - 1
        return (self.turn - 1) % len(workers)


def _line(
    scenario, run_id, block, label, seq, api, choice, known, late_ms, done_ms, warmup, failed
) -> str:
    intended = round(seq * scenario.gap_ms / MS_PER_NS)
    sent = intended + round(late_ms / MS_PER_NS)
    done = round(done_ms / MS_PER_NS)
    in_flight, active, age_ms = known
    service_us = round(api["task_size_mi"] / scenario.mips_per_core * 1e6)
    held_us = round((done - sent) / 1000)
    values = {
        "run_id": run_id, "block": block, "strategy": label, "seq": seq, "api_id": api["id"],
        "method": api["method"], "url": api["url"], "task_size_mi": api["task_size_mi"],
        "warmup": str(warmup).lower(), "intended_ns": intended, "sent_ns": sent,
        "first_byte_ns": done - 20_000, "done_ns": done, "latency_ms": (done - intended) / 1e6,
        "status": 500 if failed else 200, "error": "error:backend" if failed else "",
        "container": "abcdefghijklmnopqrstuvwxyz"[choice], "attempts": 1, "pick_ns": 900,
        "in_flight": in_flight, "active_requests": active, "stats_age_ms": round(age_ms, 3),
        "cores": scenario.cores[choice], "memory_gb": scenario.cores[choice] * 3,
        "queue_wait_us": max(0, held_us - service_us), "service_time_us": min(held_us, service_us),
    }  # fmt: skip
    return ",".join(str(values.get(name, "")) for name in COLUMNS)


def _arm(run_id: str, block: int, position: int, label: str, rows: int) -> dict:
    return {
        "run_id": run_id,
        "block": block,
        "position": position,
        "label": label,
        "strategy": label.removeprefix("aa:"),
        "seed": block,
        "state": "done",
        "rows": rows,
        "flags": [],
    }


def _manifest(name: str, scenario: Scenario, arms: list[dict], apis: list[dict]) -> dict:
    mean_mi = float(np.mean([api["task_size_mi"] for api in apis]))
    load = mean_mi / scenario.gap_ms / (sum(scenario.cores) * scenario.mips_per_core / 1000)
    return {
        "schema": "plumbline.manifest/1",
        "name": name,
        "command": ["plumbline_analysis.synthetic", "--seed", str(scenario.seed)],
        "created_utc": "2000-01-01T00:00:00Z",
        "complete": True,
        "interrupted": False,
        "versions": {"plumbline": "synthetic", "git_commit": None, "binaries_sha256": {}},
        "host": {
            "system": "synthetic",
            "cpu_model": "no machine: an exact processor-sharing model",
            "cores": 0,
            "memory_bytes": 0,
            "loop": "synthetic",
            "native_mips_per_core": scenario.mips_per_core,
            "native_mips_per_core_all_busy": scenario.mips_per_core,
        },
        "backend": {
            "kind": "synthetic",
            "reason": "made by plumbline_analysis.synthetic",
            "workers": [
                {
                    "name": "abcdefghijklmnopqrstuvwxyz"[i],
                    "cores": c,
                    "memory_bytes": c * 3 * 2**30,
                    "weight": c,
                }
                for i, c in enumerate(scenario.cores)
            ],
        },
        "preset": "synthetic",
        "protection": "plain",
        "burn": {
            "mips_per_core": scenario.mips_per_core,
            "fraction": 0.0,
            "emulated": True,
            "reason": "nothing was burned: these rows were computed",
            "load": load,
        },
        "workload": {
            "name": "synthetic",
            "sha256": "",
            "apis": len(apis),
            "requests": scenario.requests,
            "mean_mi": mean_mi,
            "rate_rps": 1000 / scenario.gap_ms,
        },
        "seed": scenario.seed,
        "stats_interval_ms": scenario.poll_ms,
        "blocks": scenario.blocks,
        "warmup_requests": int(scenario.warmup_share * scenario.requests),
        "strategies": list(scenario.strategies),
        "arms": arms,
        "flags": list(scenario.flags),
    }


def _workload(scenario: Scenario, apis: list[dict]) -> dict:
    return {
        "schema": "plumbline.workload/1",
        "name": "synthetic",
        "seed": scenario.seed,
        "generator": {"program": "plumbline_analysis.synthetic"},
        "apis": apis,
        "runs": -(-scenario.requests // len(apis)),
        "order": "shuffled",
        "arrivals": {"process": "constant", "interval_ms": scenario.gap_ms},
        "sha256": "",
    }


def _write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
