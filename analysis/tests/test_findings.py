import pytest
from made_sweeps import predicted, rows, write_findings

from plumbline_analysis.cli import main
from plumbline_analysis.findings import bound_table, features_table, judge, places
from plumbline_analysis.intervals import Interval
from plumbline_analysis.sweeps import read_sweep


@pytest.fixture
def folder(tmp_path):
    """Makes small results in which everything that is wanted holds, but for what is changed."""
    return lambda **changed: write_findings(tmp_path, **changed)


def missed(folder):
    return [j.what for j in judge(folder) if not j.holds]


def test_all_holds_where_all_numbers_are_reached(folder):
    assert missed(folder()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"closed": 0.5}, "whole cores, loads .6 to .9"),
        ({"plb": 1.4}, "RR/WRR and PLB/WRR"),
        ({"plb": 1.0}, "the paper's rank"),
        ({"asked": 1.03}, "four balancers that ask first"),
        ({"beside": 1.01}, "never slower than live counts with four"),
        ({"docker": 1.0}, "second predictor"),
        ({"worse": 199.0}, None),
        ({"worse": 190.0}, "faster wherever the oracle is by 1 %"),
    ],
)
def test_each_number_that_is_not_reached_is_missed(folder, change, said):
    found = missed(folder(**change))
    if said is None:
        assert found == []
    else:
        assert any(said in what for what in found), found


def test_a_strategy_slower_than_live_counts_is_missed(folder):
    path = folder(closed=-0.06)
    assert any("never slower" in what for what in missed(path))


def test_the_matrix_is_judged_when_it_has_been_run(folder):
    path = folder()
    columns = ["pool", "load", "traffic", "discipline", "change", "balancers", "arrivals_per_poll"]
    fine = predicted("W", 0.6, "ps", "steady", 0.5)
    slower = predicted("S", 0.6, "ps", "steady", -0.1)
    blind = predicted("W", 0.6, "fcfs", "sizes", 0)
    cells = [
        ((*labels, n, 13), means) for n, (labels, means) in ((1, fine), (4, slower), (4, blind))
    ]
    (path / "matrix.csv").write_text(rows(columns, cells[:1]))
    assert missed(path) == []
    (path / "matrix.csv").write_text(rows(columns, cells))
    found = {j.what: j.got for j in judge(path) if not j.holds}
    assert [what for what in found if "3 cells of the matrix" in what], found
    assert any("S 0.6 ps 4 balancers K 13" in got for got in found.values()), found
    wins = [got for what, got in found.items() if "by 1 %, the matrix" in what]
    assert "W 0.6 fcfs sizes 4 balancers K 13" in wins[0], found
    # More seeds of the same cells settle them.
    cells = [
        ((*labels, 4, 13), means)
        for labels, means in (
            predicted("S", 0.6, "ps", "steady", 0.5),
            predicted("W", 0.6, "fcfs", "sizes", 0.5),
        )
    ]
    (path / "matrix-close.csv").write_text(rows(columns, cells))
    assert missed(path) == []


def test_a_queue_is_told_to_the_strategies(folder):
    queue = places(read_sweep(folder() / "prediction.csv"))[2]
    assert queue.name == "W 0.8 fcfs"
    assert queue.spelled("wl-mc:reports=work") == "wl-mc:discipline=fcfs,reports=work"
    assert queue.spelled("oracle-marginal") == "oracle-marginal:discipline=fcfs"
    assert queue.spelled("weighted-least-request") == "weighted-least-request"
    assert queue.percent("oracle-marginal").point == pytest.approx(-10, abs=0.01)


def test_a_change_in_percent():
    assert Interval(1.25, 1.2, 1.3).percent == Interval(25, pytest.approx(20), pytest.approx(30))


def test_the_command_writes_tables_and_figure_and_tells_a_miss_by_its_exit_code(folder, capsys):
    path = folder()
    assert main(["findings", str(path)]) == 0
    assert "| holds |" in capsys.readouterr().out
    written = {p.name for p in path.iterdir() if p.suffix != ".csv"}
    names = (
        "reproduction",
        "signals",
        "features",
        "loads",
        "prediction",
        "bound",
        "balancers",
        "judgements",
    )
    assert written == {f"{n}.md" for n in names} | {"signals.svg", "signals.png"}
    assert main(["findings", str(folder(closed=0.1))]) == 1
    assert "| missed |" in capsys.readouterr().out


def test_a_missing_result_is_named(tmp_path, capsys):
    assert main(["findings", str(tmp_path)]) == 2
    assert "make findings" in capsys.readouterr().err


def test_the_features_are_compared_in_each_place(folder):
    table = features_table(read_sweep(folder() / "features.csv"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert [row[:3] for row in rows[2:]] == [
        ["even", "100ms", "1s"], ["random", "100ms", "1s"], ["even", "1s", "1s"],
    ]  # fmt: skip
    assert [row[3:] for row in rows[2:]] == 3 * [
        ["1.300 ± 0.000", "1.950 ± 0.000", "1.500 ± 0.000"]
    ]


def test_an_unstable_predictor_has_no_ratio_to_hold_by(folder):
    path = folder() / "features.csv"
    path.write_text(path.read_text().replace("stable,195.001", "unstable,"))
    assert any("second predictor" in what for what in missed(path.parent))


def test_what_own_knowledge_is_worth(folder):
    table = bound_table(read_sweep(folder() / "bound.csv"))
    row = [cell.strip() for cell in table.splitlines()[2].strip("|").split("|")]
    assert row == [
        "W 0.6 ps", "0.60 (0.60..0.60)", "0.70 (0.70..0.70)", "0.80 (0.80..0.80)", "",
        "0.90 (0.90..0.90)", "1.10 (1.10..1.10)", "-7.27 (-7.27..-7.27)",
    ]  # fmt: skip
