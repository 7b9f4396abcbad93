"""Rows from a small queueing model, with the true cost of every candidate: what training learns from.

Three processor-sharing containers of 4, 3 and 2 cores at 1.5 MI/ms, ten APIs on seven URLs with
mean sizes of 20 to 600 MI (log-normal factor of mean 1 and cv 0.2), Poisson arrivals, 0.25 ms on
the network each way, statistics polled every 100 ms. Everything is drawn from one seed.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from plumbline_analysis.rows import COLUMNS

CORES = (4, 3, 2)
MI_PER_MS = 1.5
NETWORK_MS = 0.25
POLL_MS = 100.0
MEANS_MI = (20, 40, 60, 90, 120, 160, 220, 300, 400, 600)
APIS = [
    (method, url)
    for url, methods in {
        "/users": ("GET", "POST"),
        "/users/orders": ("GET", "PUT"),
        "/orders/payments/receipts": ("GET",),
        "/items": ("GET", "DELETE"),
        "/items/reviews": ("GET",),
        "/carts/items": ("PATCH",),
        "/stock/prices/history": ("GET",),
    }.items()
    for method in methods
]


class Worker:
    """PS(c): ``attained`` is the work each present request has got since the worker was last empty."""

    def __init__(self, cores: int):
        self.cores = cores
        self.now = self.attained = 0.0
        self.present: list[tuple[float, int]] = []
        self.done: dict[int, float] = {}
        self.last: deque[float] = deque(maxlen=50)
        self.arrived: dict[int, float] = {}

    def rate(self) -> float:
        return MI_PER_MS * min(1.0, self.cores / len(self.present))

    def advance(self, to: float) -> None:
        while self.present:
            key, request = self.present[0]
            end = self.now + (key - self.attained) / self.rate()
            if end > to:
                self.attained += (to - self.now) * self.rate()
                break
            heapq.heappop(self.present)
            self.now, self.attained = end, key
            self.done[request] = end
            self.last.append(end - self.arrived[request])
        if not self.present:
            self.attained = 0.0
        self.now = to

    def add(self, request: int, mi: float) -> None:
        heapq.heappush(self.present, (self.attained + mi, request))
        self.arrived[request] = self.now

    def statistics(self) -> tuple[int, float]:
        return len(self.present), float(np.mean(self.last)) if self.last else 0.0

    def cost_ms(self, mi: float) -> float:
        """Time a request of this size would take here if nobody else came."""
        left = sorted(key - self.attained for key, _ in self.present)
        total, level = 0.0, 0.0
        for place, rest in enumerate([*left, float("inf")]):
            step = min(rest, mi) - level
            if step > 0:
                sharing = len(left) - place + 1
                total += step * max(1.0, sharing / self.cores) / MI_PER_MS
                level += step
        return total


@dataclass
class World:
    """What one run left behind."""

    lines: list[str]
    candidates: list[dict]
    latencies_ms: np.ndarray

    def rows_csv(self) -> str:
        return "\n".join([",".join(COLUMNS), *self.lines]) + "\n"


Rule = Callable[[str, str, list[int], list[tuple[int, float]]], int]
"""From method, URL, requests held now and polled statistics to a container."""


def simulate(
    requests: int,
    load: float,
    strategy: str | Rule = "round-robin",
    seed: int = 1,
    run_id: str = "r1",
) -> World:
    """One run of ``round-robin``, ``weighted-random`` or a rule at this load."""
    rng = np.random.default_rng(seed)
    gap_ms = np.mean(MEANS_MI) / (load * MI_PER_MS * sum(CORES))
    due = np.cumsum(rng.exponential(gap_ms, requests))
    api = rng.integers(len(APIS), size=requests)
    sigma2 = np.log(1 + 0.2**2)
    mi = np.array(MEANS_MI)[api] * rng.lognormal(-sigma2 / 2, np.sqrt(sigma2), requests)
    random_pick = rng.choice(len(CORES), size=requests, p=np.array(CORES) / sum(CORES))
    workers = [Worker(c) for c in CORES]
    board, next_poll = [(0, 0.0)] * len(CORES), 0.0
    picks, candidates = [], []
    for i, now in enumerate(due):
        while next_poll <= now:
            for worker in workers:
                worker.advance(next_poll)
            board, next_poll = [w.statistics() for w in workers], next_poll + POLL_MS
        for worker in workers:
            worker.advance(now)
        if callable(strategy):
            choice = strategy(*APIS[api[i]], [len(w.present) for w in workers], board)
        else:
            choice = i % len(CORES) if strategy == "round-robin" else int(random_pick[i])
        candidates += [
            {
                "run_id": run_id, "seq": i, "method": APIS[api[i]][0], "url": APIS[api[i]][1],
                "cores": w.cores, "memory_gb": 3 * w.cores, "active_requests": board[k][0],
                "mean_latency_ms_last_50": board[k][1], "in_flight": len(w.present),
                "cost_ms": w.cost_ms(mi[i]),
            }
            for k, w in enumerate(workers)
        ]  # fmt: skip
        picks.append(
            (choice, len(workers[choice].present), *board[choice], now - next_poll + POLL_MS)
        )
        workers[choice].add(i, mi[i])
    for worker in workers:
        worker.advance(float("inf"))
    done = {i: end for w in workers for i, end in w.done.items()}
    lines = []
    for i, (choice, live, active, mean50, age_ms) in enumerate(picks):
        intended = round(due[i] * 1e6)
        finished = round((done[i] + 2 * NETWORK_MS) * 1e6)
        row = {
            "run_id": run_id, "block": 1, "strategy": getattr(strategy, "__name__", strategy), "seq": i, "api_id": f"api-{api[i]}",
            "method": APIS[api[i]][0], "url": APIS[api[i]][1], "task_size_mi": round(mi[i], 3),
            "warmup": "true" if i < requests // 20 else "false", "intended_ns": intended,
            "sent_ns": intended, "first_byte_ns": finished, "done_ns": finished,
            "latency_ms": (finished - intended) / 1e6, "status": 200, "container": "abc"[choice],
            "attempts": 1, "in_flight": live, "active_requests": active,
            "mean_latency_ms_last_50": round(mean50, 6) if mean50 else "",
            "stats_age_ms": round(age_ms, 3), "cores": CORES[choice],
            "memory_gb": 3 * CORES[choice], "cpu_percent": round(100 * min(live, CORES[choice]), 1),
            "memory_mib": 8 + 4 * active,
        }  # fmt: skip
        lines.append(",".join(str(row.get(name, "")) for name in COLUMNS))
    latencies = np.array([done[i] + 2 * NETWORK_MS - due[i] for i in range(requests)])
    return World(lines, candidates, latencies)
