import numpy as np
import pytest
from queue_world import APIS, simulate

from plumbline_analysis.problem import Problem
from plumbline_analysis.synthetic import Scenario, write_folder
from plumbline_analysis.training.dataset import read_dataset
from plumbline_analysis.training.splits import split


def write(path, *worlds):
    lines = worlds[0].rows_csv().splitlines()
    for world in worlds[1:]:
        lines += world.lines
    path.write_text("\n".join(lines) + "\n")
    return path


def test_only_answered_requests_after_the_warm_up_are_learned_from(tmp_path):
    world = simulate(400, 0.42)
    assert world.lines[100].split(",")[8] == "false"
    fields = world.lines[100].split(",")
    fields[14], fields[15] = "503", "error:full"
    world.lines[100] = ",".join(fields)
    data = read_dataset([write(tmp_path / "rows.csv", world)])
    assert data.left_out == {"warm-up": 20, "not ok": 1}
    assert len(data.frame) == 379
    assert data.strategy == "round-robin" and data.loads == []
    assert data.containers == [(4.0, 12.0), (3.0, 9.0), (2.0, 6.0)]
    assert set(data.apis) == set(APIS)


def test_missing_statistics_read_as_zero_and_queries_are_no_part_of_a_url(tmp_path):
    world = simulate(400, 0.42)
    fields = world.lines[200].split(",")
    fields[6] += "?page=2"
    fields[20] = fields[21] = ""
    world.lines[200] = ",".join(fields)
    row = read_dataset([write(tmp_path / "rows.csv", world)]).frame.iloc[180]
    assert row["url"] == fields[6].removesuffix("?page=2")
    assert row["active"] == 0 and row["mean50"] == 0


@pytest.mark.parametrize(
    ("statistics", "first"), [("polled", 20), ("piggyback", 20), ("live", 19), ("docker", 25)]
)
def test_each_kind_of_statistics_has_its_own_columns(tmp_path, statistics, first):
    world = simulate(300, 0.7)
    data = read_dataset([write(tmp_path / "rows.csv", world)], statistics)
    expected = [float(line.split(",")[first]) for line in world.lines[15:]]
    assert data.frame[data.axes[0]].tolist() == expected
    assert data.axes == (
        ("cpu_percent", "memory_used_mib") if statistics == "docker" else ("active", "mean50")
    )


def test_the_load_comes_from_the_manifest_and_the_strategy_must_be_named(tmp_path):
    folder = write_folder(tmp_path / "run", Scenario())
    with pytest.raises(Problem, match=r"has 3 strategies: .*--strategy"):
        read_dataset([folder])
    with pytest.raises(Problem, match="jsq: known: round-robin, smooth"):
        read_dataset([folder], strategy="jsq")
    data = read_dataset([folder], strategy="round-robin")
    # 20 APIs of some 400 MI every 10 ms on nine cores of 7,450 MIPS.
    assert data.loads == [pytest.approx(0.6, abs=0.05)]
    assert set(data.frame["recording"]) == {0}


def test_recordings_are_limited_one_by_one_and_have_their_loads(tmp_path):
    paths = [write(tmp_path / f"{i}.csv", simulate(500, 0.3, seed=i)) for i in (1, 2)]
    data = read_dataset(paths, limit=150, loads=[0.3, 0.5])
    assert data.frame.groupby("recording").size().tolist() == [150, 150]
    assert data.left_out["beyond the limit"] == 2 * (475 - 150)
    with pytest.raises(Problem, match="--load: 1 given for 2 recordings"):
        read_dataset(paths, loads=[0.3])


def test_too_few_rows_and_absent_columns_are_refused(tmp_path):
    with pytest.raises(Problem, match=r"95 rows to learn from.*at least 100"):
        read_dataset([write(tmp_path / "rows.csv", simulate(100, 0.3))])
    world = simulate(300, 0.3)
    world.lines = [
        ",".join("" if i in (25, 26) else x for i, x in enumerate(line.split(",")))
        for line in world.lines
    ]
    path = write(tmp_path / "rows.csv", world)
    with pytest.raises(Problem, match=r"cpu_percent.*no docker statistics"):
        read_dataset([path], "docker")


def test_the_digest_is_of_what_is_learned_from(tmp_path):
    one = read_dataset([write(tmp_path / "1.csv", simulate(300, 0.3, seed=1))])
    same = read_dataset([write(tmp_path / "2.csv", simulate(300, 0.3, seed=1))])
    other = read_dataset([write(tmp_path / "3.csv", simulate(300, 0.3, seed=2))])
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize("kind", ["random", "blocked"])
def test_a_split_parts_every_row_once_70_15_15(dataset, kind):
    parts = split(dataset, kind, seed=42)
    count = len(dataset.frame)
    sizes = [len(p) for p in (parts.train, parts.validation, parts.test)]
    assert sizes == [
        round(0.7 * count),
        round(0.85 * count) - round(0.7 * count),
        count - round(0.85 * count),
    ]
    together = np.concatenate([parts.train, parts.validation, parts.test])
    assert sorted(together) == list(range(count))


def test_the_blocked_split_is_by_time_within_each_recording(tmp_path):
    paths = [write(tmp_path / f"{i}.csv", simulate(400, 0.3, seed=i)) for i in (1, 2)]
    data = read_dataset(paths)
    parts = split(data, "blocked", seed=1)
    for recording in (0, 1):
        sent = data.frame["sent_ns"].where(data.frame["recording"] == recording)
        train, validation, test = (
            sent.iloc[p].dropna() for p in (parts.train, parts.validation, parts.test)
        )
        assert len(train) > len(test) > 0
        assert train.max() < validation.min() and validation.max() < test.min()


def test_the_random_split_depends_on_its_seed_alone(dataset):
    one, same, other = (split(dataset, "random", s).test for s in (1, 1, 2))
    assert (one == same).all() and not np.array_equal(one, other)
