import hashlib
import json

import numpy as np
import pytest
from queue_world import simulate

from plumbline_analysis.training.cli import main
from plumbline_analysis.training.tablefile import read_table, write_table


@pytest.fixture(scope="module")
def trained(recording, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "model"
    status = main(
        ["train", "--rows", str(recording / "rows.csv"), "--load", "0.42", "--iterations", "40",
         "--candidates", str(recording / "candidates.csv"), "--out", str(folder)]
    )  # fmt: skip
    assert status == 0
    return folder


def refusal(capsys, *arguments) -> str:
    assert main([str(a) for a in arguments]) == 2
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1
    return text


def test_training_leaves_a_model_a_table_and_a_card(trained):
    assert sorted(p.name for p in trained.iterdir()) == [
        "model-card.json", "model-card.md", "model.cbm", "model.plbtab",
    ]  # fmt: skip
    card = json.loads((trained / "model-card.json").read_text())
    digest = hashlib.sha256((trained / "model.cbm").read_bytes()).hexdigest()
    header = read_table(trained / "model.plbtab").header
    assert card["model_sha256"] == header["model_sha256"] == digest
    assert header["trained_on"] == {
        "strategy": "round-robin", "load": [0.42], "rows": 3800, "seed": 42, "statistics": "polled",
    }  # fmt: skip
    assert header["unit"] == "ms" and header["cap_trees"] == 40
    assert header["kept_trees"] == card["trees"]["kept"] <= 40
    assert header["r2"] == card["r2"] and 0.6 < header["r2"]["blocked"]["test"] < 1
    # Ten APIs on six methods, one stand-in for each method and one for everything.
    methods = {a["method"] for a in header["apis"] if a["url"]}
    assert len(header["apis"]) == 10 + len(methods) + 1
    assert header["containers"] == [{"cores": float(c), "memory_gb": 3.0 * c} for c in (4, 3, 2)]
    assert card["ranking"]["accuracy"] > 0.8
    assert card["left_out"] == {"warm-up": 200}


def test_the_card_says_in_words_what_it_says_in_numbers(trained):
    card = json.loads((trained / "model-card.json").read_text())
    page = (trained / "model-card.md").read_text()
    for text in (
        "3800 rows under round-robin, load 0.42",
        f"| random | {card['r2']['random']['validation']:.3f} | {card['r2']['random']['test']:.3f} |",
        f"| blocked | {card['r2']['blocked']['validation']:.3f} |",
        f"{card['trees']['kept']} kept of 40",
        f"{100 * card['ranking']['accuracy']:.1f} %",
        "| learning_rate | 0.23265 |",
        card["model_sha256"],
        "When not to use it",
    ):
        assert text in page, text


def test_verify_finds_a_table_that_is_not_its_models(trained, tmp_path, capsys):
    model = trained / "model.cbm"
    assert main(["verify", str(trained / "model.plbtab"), str(model)]) == 0
    table = read_table(trained / "model.plbtab")
    cells = table.cells.copy()
    cells[0, 0, 0, 0] = np.nextafter(cells[0, 0, 0, 0], 0)
    write_table(type(table)(table.header, cells), tmp_path / "other.plbtab")
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "other.plbtab"), str(model)]) == 1
    asked = 2 * table.cells.size
    # The first cell is asked twice at the same place: the first bins have no lower end.
    assert capsys.readouterr().out == f"{asked - 2}/{asked} predictions equal\n"


def test_export_writes_the_same_table_and_one_for_other_containers(trained, tmp_path):
    out = tmp_path / "again.plbtab"
    assert main(["export", str(trained / "model.cbm"), "--out", str(out)]) == 0
    assert out.read_bytes() == (trained / "model.plbtab").read_bytes()
    status = main(
        ["export", str(trained / "model.cbm"), "--out", str(out), "--containers", "8:24,1:2",
         "--json", str(tmp_path / "m.json")]
    )  # fmt: skip
    assert status == 0
    assert read_table(out).header["containers"] == [
        {"cores": 8.0, "memory_gb": 24.0},
        {"cores": 1.0, "memory_gb": 2.0},
    ]
    assert "oblivious_trees" in json.loads((tmp_path / "m.json").read_text())


def test_a_mix_of_loads_with_live_counts_trains_a_robust_model(tmp_path):
    arguments = [
        "train",
        "--out",
        str(tmp_path / "m"),
        "--statistics",
        "live",
        "--variant",
        "robust",
    ]
    for load in (0.3, 0.7):
        path = tmp_path / f"{load}.csv"
        path.write_text(simulate(600, load, "weighted-random", seed=4).rows_csv())
        arguments += ["--rows", str(path), "--load", str(load)]
    assert main([*arguments, "--limit", "500", "--iterations", "20", "--split", "blocked"]) == 0
    header = read_table(tmp_path / "m" / "model.plbtab").header
    assert header["trained_on"]["load"] == [0.3, 0.7] and header["trained_on"]["rows"] == 1000
    assert header["trained_on"]["statistics"] == "live" and header["split"] == "blocked"
    assert header["axes"][1] == {"feature": "mean50", "borders": []}


def test_rows_that_all_took_the_same_time_teach_nothing(recording, tmp_path, capsys):
    lines = (recording / "rows.csv").read_text().splitlines()
    header = lines[0].split(",")
    done, latency, intended = (header.index(n) for n in ("done_ns", "latency_ms", "intended_ns"))
    for place, line in enumerate(lines[1:], start=1):
        fields = line.split(",")
        fields[done], fields[latency] = str(int(fields[intended]) + 50_000_000), "50"
        lines[place] = ",".join(fields)
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    text = refusal(capsys, "train", "--rows", path, "--iterations", 3, "--out", tmp_path / "m")
    assert text == "error: training: All train targets are equal\n"
    assert not (tmp_path / "m").exists()


def test_a_docker_model_has_the_axes_of_the_papers_second_table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(simulate(400, 0.5, seed=4).rows_csv())
    status = main(
        ["train", "--rows", str(path), "--statistics", "docker", "--iterations", "5",
         "--out", str(tmp_path / "m")]
    )  # fmt: skip
    assert status == 0
    header = read_table(tmp_path / "m" / "model.plbtab").header
    assert [a["feature"] for a in header["axes"]] == ["cpu_percent", "memory_used_mib"]
    card = json.loads((tmp_path / "m" / "model-card.json").read_text())
    assert card["parameters"]["border_count"] == 128 and card["parameters"]["depth"] == 10


def test_a_search_leaves_parameters_that_training_takes(recording, tmp_path, capsys):
    rows = ["--rows", str(recording / "rows.csv"), "--limit", "400", "--iterations", "10"]
    assert main(["tune", *rows, "--trials", "2", "--out", str(tmp_path / "s")]) == 0
    assert "trial" in capsys.readouterr().out
    best = json.loads((tmp_path / "s" / "best.json").read_text())
    assert (tmp_path / "s" / "trials.csv").read_text().count("\n") == 3
    status = main(
        ["train", *rows, "--parameters", str(tmp_path / "s" / "best.json"),
         "--out", str(tmp_path / "m")]
    )  # fmt: skip
    assert status == 0
    card = json.loads((tmp_path / "m" / "model-card.json").read_text())
    assert {k: card["parameters"][k] for k in best} == best


def test_bad_input_is_refused_in_one_line_with_the_next_step(trained, recording, tmp_path, capsys):
    rows, out = recording / "rows.csv", tmp_path / "m"
    text = refusal(capsys, "train", "--rows", rows, "--out", trained)
    assert "model.cbm: is there already; add --force" in text
    text = refusal(capsys, "train", "--rows", tmp_path / "none", "--out", out)
    assert "none: no such file" in text
    text = refusal(capsys, "train", "--rows", rows, "--strategy", "jsq", "--out", out)
    assert "strategy: jsq: known: round-robin" in text
    text = refusal(capsys, "train", "--rows", rows, "--parameters", tmp_path / "p", "--out", out)
    assert "run `tune` first" in text
    (tmp_path / "p").write_text("[1]")
    text = refusal(capsys, "train", "--rows", rows, "--parameters", tmp_path / "p", "--out", out)
    assert "not a JSON object" in text
    for parameters, expected in [
        ('{"depth": 99}', "depth"),
        ('{"depht": 9}', "p: depht: known: iterations, learning_rate"),
        ('{"depth": "9"}', "p: depth: '9': not a finite number"),
        ('{"rsm": NaN}', "p: rsm: nan: not a finite number"),
        ('{"iterations": 100001}', "p: iterations: 100001: allowed: 1 to 100000"),
        ('{"depth":', "p: not JSON"),
    ]:
        (tmp_path / "p").write_text(parameters)
        text = refusal(
            capsys, "train", "--rows", rows, "--parameters", tmp_path / "p", "--out", out
        )
        assert expected in text
    text = refusal(capsys, "verify", rows, trained / "model.cbm")
    assert "this is no latency table" in text
    text = refusal(capsys, "verify", trained / "model.plbtab", rows)
    assert "no model of CatBoost's binary form" in text
    text = refusal(capsys, "export", tmp_path / "none.cbm", "--out", out)
    assert "none.cbm: no such file" in text
    assert not out.exists()


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--containers", "4"), ("--containers", "0:1"), ("--iterations", "0"), ("--limit", "-1"),
     ("--threads", "x"), ("--statistics", "guessed"), ("--load", "high"), ("--load", "0"), ("--seed", "-1"),
     ("--seed", "4294967296")],
)  # fmt: skip
def test_bad_usage_is_exit_code_2(recording, tmp_path, capsys, flag, value):
    with pytest.raises(SystemExit) as stop:
        main(["train", "--rows", str(recording / "rows.csv"), flag, value, "--out", str(tmp_path)])
    assert stop.value.code == 2 and flag in capsys.readouterr().err
