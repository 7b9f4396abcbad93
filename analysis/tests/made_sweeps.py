"""Results of sweeps for the tests, made by hand."""

import itertools

SEEDS = range(1, 7)
BLIND = "smooth-weighted-round-robin"
TOLD_ORACLE = "oracle-marginal:truth=world"


def rows(columns, cells):
    """A result with a row per seed; the mean of a cell moves a little with the seed."""
    lines = ["run," + ",".join(columns) + ",strategy,seed,verdict,mean_ms"]
    for labels, means in cells:
        for (strategy, ms), seed in itertools.product(means.items(), SEEDS):
            said = f'"{strategy}"' if "," in strategy else strategy
            lines.append(f"0,{','.join(map(str, labels))},{said},{seed},stable,{ms + 0.001 * seed}")
    return "\n".join(lines) + "\n"


def predicted(pool, load, discipline, change, closed, base=200.0, oracle=180.0):
    """A cell in which wl-mc closes this share of the gap, and the told variants all of it."""
    asked = "" if discipline == "ps" else f":discipline={discipline}"
    world = "truth=world" if change == "speed" else ""
    also = ":" if discipline == "ps" else ","
    means = {
        "weighted-least-request": base,
        f"wl-mc{asked}": base - closed * (base - oracle),
        f"wl-mc{asked}{also}speed=reported": oracle,
        f"wl-mc{asked}{also}reports=work": oracle,
        f"oracle-marginal{asked}{also if change == 'speed' else ''}{world}": oracle,
    }
    return (pool, load, "light", discipline, change), means


def write_findings(folder, closed=0.95, plb=1.25, asked=1.01, beside=1.0, worse=None, docker=1.5):
    """Small results of the sweeps of findings in which everything that is wanted holds, but for what is changed."""
    ratios = {BLIND: 100.0, "round-robin": 108.0, "plb-paper": 100 * plb}
    (folder / "reproduction.csv").write_text(
        rows(["load", "arrivals_per_poll"], [((0.6, 7), ratios)])
    )
    causes = {
        BLIND: 100.0, "plb-paper": 130.0, "polled-least-request": 150.0, "plb-softmax": 120.0,
        "plb-p2c": 118.0, "basic-li": 110.0, "plb-live": 100.0,
        "weighted-least-request": 100.0, "wl-mc": 100.0,
    }  # fmt: skip
    cells = [(("even", 0.614, k), causes) for k in (1, 10)]
    (folder / "causes.csv").write_text(rows(["gaps", "load", "arrivals_per_poll"], cells))
    features = {BLIND: 100.0, "plb-paper": 130.0, "plb-docker": 130 * docker}
    cells = [
        (at, features) for at in (("even", "100ms:1s"), ("random", "100ms:1s"), ("even", "1s:1s"))
    ]
    (folder / "features.csv").write_text(rows(["gaps", "renewed"], cells))
    cells = [
        predicted("W", 0.6, "ps", "steady", closed),
        predicted("S", 0.6, "ps", "steady", 0.95),
        predicted("W", 0.8, "fcfs", "steady", 0.95),
        predicted("W", 0.6, "ps", "speed", 0.95),
        *([predicted("W", 0.3, "ps", "sizes", 0, oracle=worse)] if worse else []),
    ]
    columns = ["pool", "load", "traffic", "discipline", "change"]
    (folder / "prediction.csv").write_text(rows(columns, cells))
    means = {"weighted-least-request": 110.0, "wl-mc": 104.0, "roll-out:ahead=0": 103.0}
    means |= {"roll-out": 102.0, "wl-mc:reports=work": 101.0, "oracle-marginal": 100.0}
    means["roll-out:reports=work"] = 99.0
    cells = [(("W", 0.6, "light", "ps", "steady"), means)]
    (folder / "bound.csv").write_text(rows(columns, cells))
    live = {"weighted-least-request": 110.0, "wl-mc": 110 * beside}
    means = {"wl-mc:reports=work": 100 * asked, TOLD_ORACLE: 100.0, **live}
    cells = [(("S", 0.6, asks), means) for asks in ("no", "first")]
    (folder / "balancers.csv").write_text(rows(["pool", "load", "asked"], cells))
    return folder
