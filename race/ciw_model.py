"""The model in Ciw: arrivals at a station without delay, whose router joins the least (n + 1)/servers."""

import json
import random
import sys

import ciw

SERVERS = (4, 3, 2)


class ShortestExpectedDelay(ciw.routing.NodeRouting):
    """Joins the station of least (n + 1)/servers, ties by lot."""

    def next_node(self, individual):
        """The station of the next request."""
        nodes = self.simulation.nodes[2 : 2 + len(SERVERS)]
        scores = [(n.number_of_individuals + 1) / c for n, c in zip(nodes, SERVERS, strict=True)]
        least = min(scores)
        return random.choice([n for n, s in zip(nodes, scores, strict=True) if s == least])


def main(requests: int, load: float, seed: int) -> None:
    """Simulates and prints requests and mean."""
    ciw.seed(seed)
    random.seed(seed)
    exponential = ciw.dists.Exponential(rate=1.0)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate=load * sum(SERVERS)), None, None, None],
        service_distributions=[ciw.dists.Deterministic(value=0.0), *[exponential] * len(SERVERS)],
        number_of_servers=[float("inf"), *SERVERS],
        routing=ciw.routing.NetworkRouting(
            routers=[ShortestExpectedDelay(), *[ciw.routing.Leave() for _ in SERVERS]]
        ),
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests, method="Finish")
    records = [r for r in simulation.get_all_records() if r.node > 1]
    records.sort(key=lambda r: r.exit_date)
    measured = records[len(records) // 10 :]
    mean = sum(r.exit_date - r.arrival_date for r in measured) / len(measured)
    print(json.dumps({"requests": len(records), "mean": mean}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
