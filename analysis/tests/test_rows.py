import warnings

import pytest
from conftest import line, rows_text

from plumbline_analysis import Problem
from plumbline_analysis.rows import COLUMNS, TruncatedRows, read_rows


def test_whole_rows_are_read_typed(write_rows):
    rows = read_rows(write_rows([line(seq=0), line(seq=1, latency_ms=60.25, predicted_ms=12.5)]))
    assert rows["latency_ms"].tolist() == [50.0, 60.25]
    assert rows["warmup"].dtype == bool
    assert rows["intended_ns"].tolist() == [0, 10_000_000]
    assert rows["outcome"].tolist() == ["ok", "ok"]
    assert rows["predicted_ms"].isna().tolist() == [True, False]


def test_one_unterminated_last_line_is_dropped_with_a_warning(write_rows):
    path = write_rows([line(seq=0)], tail=line(seq=1)[:40])
    with pytest.warns(
        TruncatedRows, match=r"rows\.csv:3: dropped one unterminated last line \(40 bytes\)"
    ):
        rows = read_rows(path)
    assert len(rows) == 1


def test_even_a_complete_looking_unterminated_line_is_dropped(write_rows):
    # Without its newline nobody can tell whether the last number was cut short.
    path = write_rows([line(seq=0)], tail=line(seq=1))
    with pytest.warns(TruncatedRows):
        assert len(read_rows(path)) == 1


def test_quoted_fields_keep_their_commas(write_rows):
    label = '"weighted-least-request:offset=0,ties=smooth"'
    rows = read_rows(write_rows([line(strategy=label)]))
    assert rows["strategy"].tolist() == ["weighted-least-request:offset=0,ties=smooth"]


def test_a_row_outside_a_bench_has_no_block(write_rows):
    assert read_rows(write_rows([line(block="")]))["block"].tolist() == [0]


def test_a_file_with_a_header_alone_has_no_rows(write_rows):
    assert len(read_rows(write_rows([]))) == 0


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (line(seq=1)[:60], "rows.csv:3: 9 fields in a row of 30"),
        (line(seq=1) + ",", "rows.csv:3: 31 fields in a row of 30"),
        ("", "rows.csv:3: 0 fields in a row of 30"),
        (line(seq=1, task_size_mi="nan"), "rows.csv:3: task_size_mi: 'nan': not a finite number"),
        (line(seq=1, task_size_mi="1e999"), "rows.csv:3: task_size_mi: 1e999: out of range"),
        (line(seq=1, task_size_mi=-4), "rows.csv:3: task_size_mi: -4: out of range"),
        (line(seq=1, task_size_mi=""), "rows.csv:3: task_size_mi: '': not a finite number"),
        (line(seq=1, sent_ns="1.5"), "rows.csv:3: sent_ns: '1.5': not a whole number"),
        (line(seq=1, cores='"4\n3"'), r"rows.csv:4: cores: '4\n3': not a finite number"),
        (line(seq=1, warmup="yes"), "rows.csv:3: warmup: 'yes': allowed: true, false"),
        (line(seq=1, run_id=""), "rows.csv:3: run_id: must not be empty"),
        (line(seq=1, error="oops"), "rows.csv:3: error: 'oops': not an outcome"),
        (line(seq=1, error="never_sent"), "rows.csv:3: error: 'never_sent': not an outcome"),
        (line(seq=1, status=503), "rows.csv:3: status: 503: an ok row needs a status of 200 to 399"),
        (line(seq=1, status=""), "rows.csv:3: status: nan: an ok row needs a status of 200 to 399"),
        (line(seq=1, done_ns=70_000_000), "rows.csv:3: latency_ms: 50: differs from done_ns - intended_ns"),
        (line(seq=1, error="never_sent:bound", status="", done_ns="", latency_ms=""), "sent_ns: 10050000: a row that"),
        (line(seq=0), "rows.csv:3: seq: b01-a1 0: this request was recorded before"),
    ],
)  # fmt: skip
def test_damage_is_refused_with_its_line(write_rows, bad, message):
    path = write_rows([line(seq=0), bad])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Problem) as caught:
            read_rows(path)
    assert message in str(caught.value)


def test_damage_in_the_middle_is_not_taken_for_a_cut_end(write_rows):
    path = write_rows([line(seq=0)[:50], line(seq=1)])
    with pytest.raises(Problem, match=r"rows\.csv:2: .* fields in a row of 30"):
        read_rows(path)


def test_every_outcome_is_read(write_rows):
    nothing = {"status": "", "done_ns": "", "latency_ms": "", "container": ""}
    rows = read_rows(
        write_rows(
            [
                line(seq=0),
                line(seq=1, error="error:backend", status=500),
                line(seq=2, error="timeout", status=""),
                line(seq=3, error="cancelled", status=""),
                line(seq=4, error="never_sent:in_flight_bound", sent_ns="", **nothing),
            ]
        )
    )
    assert rows["outcome"].tolist() == ["ok", "error", "timeout", "cancelled", "never_sent"]


def test_rows_that_were_never_answered_belong_to_the_strategy_of_their_run(write_rows):
    nothing = {"strategy": "", "status": "", "done_ns": "", "latency_ms": "", "container": ""}
    lost = line(seq=0, error="never_sent:interrupted", sent_ns="", **nothing)
    rows = read_rows(write_rows([lost, line(seq=1)]))
    assert rows["strategy"].tolist() == ["round-robin", "round-robin"]
    rows = read_rows(write_rows([lost]))
    assert rows["strategy"].tolist() == ["unlabelled"]


def test_a_run_of_two_strategies_is_refused(write_rows):
    path = write_rows([line(seq=0), line(seq=1, strategy="random")])
    with pytest.raises(Problem, match=r"rows\.csv:3: strategy: random: the run b01-a1 began under"):
        read_rows(path)


def test_another_header_is_refused_by_name(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(rows_text([]).replace("latency_ms", "latency_us", 1))
    with pytest.raises(Problem, match=r"rows\.csv:1: column 14 is latency_us, expected latency_ms"):
        read_rows(path)


def test_an_empty_or_missing_or_binary_file_is_refused(tmp_path):
    empty, binary = tmp_path / "empty.csv", tmp_path / "binary.csv"
    empty.touch()
    binary.write_bytes(rows_text([line()]).encode() + b"\xff\xfe\n")
    for path, message in [
        (empty, "the file is empty"),
        (binary, "binary.csv:3: not UTF-8"),
        (tmp_path / "none", "no such file"),
    ]:
        with pytest.raises(Problem, match=message):
            read_rows(path)


def test_the_columns_are_those_of_the_contract():
    assert len(COLUMNS) == 30
    assert COLUMNS[0] == "run_id" and COLUMNS[-1] == "service_time_us"
