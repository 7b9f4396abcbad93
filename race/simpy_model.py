"""The model in SimPy: a process per request, a resource per station."""

import json
import random
import sys

import simpy

SERVERS = (4, 3, 2)


def main(requests: int, load: float, seed: int) -> None:
    """Simulates and prints requests and mean."""
    draw = random.Random(seed)
    env = simpy.Environment()
    stations = [simpy.Resource(env, capacity=c) for c in SERVERS]
    present = [0] * len(SERVERS)
    left_out, departed, total = requests // 10, 0, 0.0

    def pick() -> int:
        scores = [(n + 1) / c for n, c in zip(present, SERVERS, strict=True)]
        least = min(scores)
        tied = [i for i, score in enumerate(scores) if score == least]
        return tied[0] if len(tied) == 1 else draw.choice(tied)

    def request(env):
        nonlocal departed, total
        arrived = env.now
        station = pick()
        present[station] += 1
        size = draw.expovariate(1.0)
        with stations[station].request() as turn:
            yield turn
            yield env.timeout(size)
        present[station] -= 1
        departed += 1
        if departed > left_out:
            total += env.now - arrived

    def arrivals(env):
        rate = load * sum(SERVERS)
        for _ in range(requests):
            yield env.timeout(draw.expovariate(rate))
            env.process(request(env))

    env.process(arrivals(env))
    env.run()
    print(json.dumps({"requests": departed, "mean": total / (departed - left_out)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
