import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from plumbline_analysis import Arm, Comparison, Difference, Problem, compare, figures, load, paper
from plumbline_analysis.cli import main
from plumbline_analysis.intervals import Interval, student
from plumbline_analysis.report import _disagreements, render, write_report
from plumbline_analysis.svg import inline
from plumbline_analysis.synthetic import Scenario, write_folder

SAMPLE = Path(__file__).parents[1] / "sample"
VOID = {"meta", "br", "img", "link", "hr", "input", "col"}


class Page(HTMLParser):
    """Collects tags, ids and text, and checks that tags nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.attributes, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return re.sub(r"\s+", " ", " ".join(self.text))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    scenario = Scenario(
        ("round-robin", "smooth-weighted-round-robin", "plb-paper"),
        blocks=7,
        requests=400,
        apis=100,
        error_share=0.004,
    )
    path = write_folder(tmp_path_factory.mktemp("report") / "run", scenario)
    return Page(write_report(path).read_text())


def test_the_page_needs_nothing_from_outside(page):
    for tag, name, value in page.attributes:
        assert tag not in ("script", "link", "img", "iframe", "object")
        if name in ("src", "href", "xlink:href", "data", "action"):
            assert value.startswith("#"), (tag, name, value)
        if name == "style":
            assert "url(" not in value.replace("url(#", "")
    assert "@import" not in page.words and "url(http" not in page.words


def test_the_page_is_well_formed_and_its_ids_are_unique(page):
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))


def test_the_page_says_what_was_found_and_on_what_it_rests(page):
    for text in [
        "smooth-weighted-round-robin is faster than round-robin",
        "7 paired blocks",
        "The same strategy run twice differed by",
        "round-robin (A/A)",
        "the paper's Figure 1", "the paper's Figure 2", "the paper's Figure 3", "the paper's Figure 4",
        "Was the generator on time?",
        "198.90", "214.67", "249.63", "2.07", "1.92", "1.65",
        "Compare ratios, not milliseconds",
        "emulated: 0 % of the instructions really burned",
        "Commit", "Seed", "Command", "Machine",
        "Requests without a good answer",
    ]:  # fmt: skip
        assert text in page.words, text


def test_the_paper_is_named_beside_its_own_workload_only(make_folder):
    other = Page(write_report(make_folder(Scenario(apis=20, blocks=1, requests=100))).read_text())
    assert "the paper" not in other.words
    assert paper.is_workload(load(SAMPLE))


def test_pictures_have_a_text_and_wide_parts_scroll_from_the_keyboard(page):
    pictures = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "role")]
    texts = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(pictures) == len(texts) == 8 and all(len(text) > 80 for text in texts)
    scrolls = [value for _, name, value in page.attributes if name == "tabindex"]
    assert scrolls == ["0"] * (8 + 2), "figures and the two tables"


def difference(label, log_ratios, p_holm):
    inside = student(np.array(log_ratios))
    ratio = Interval(*(math.exp(x) for x in (inside.point, inside.low, inside.high)))
    blocks = list(range(1, len(log_ratios) + 1))
    return Difference(
        label, "mean_ms", blocks, np.array(log_ratios), ratio, None, p_holm / 2, p_holm
    )


def test_an_interval_and_a_p_that_seem_to_disagree_are_explained():
    # Six blocks below zero and one above: t sees a difference, the adjusted sign flip does not.
    below = [-0.05, -0.051, -0.049, -0.05, -0.052, -0.048, 0.01]
    found = {
        (label, "mean_ms"): difference(label, logs, p)
        for label, logs, p in [
            ("p2c", below, 0.062),
            ("random", [0.04, -0.05, 0.2, -0.01, 0.1, -0.02, 0.3], 0.03),
            ("least-request", below, 0.03),
            ("plb-live", [0.04, -0.05, 0.2, -0.01, 0.1, -0.02, 0.3], 0.4),
        ]
    }
    arms = [Arm(label, []) for label, _ in found]
    said = _disagreements(Comparison("round-robin", arms, found, None, 7, 6))
    assert len(said) == 2
    assert said[0].startswith("The interval of p2c leaves zero out although its p is 0.062")
    assert said[1].startswith("The interval of random holds zero although its p is 0.030")
    few = Comparison("round-robin", arms, found, None, 7, blocks_needed=8)
    assert _disagreements(few) == [], "too few blocks for any claim is said already"


def test_a_block_far_outside_is_named_in_the_figure(make_folder):
    path = make_folder(Scenario(blocks=7, requests=100))
    assert "block 4" not in figure_text(path)
    lines = (path / "rows.csv").read_text().splitlines()
    for place, text in enumerate(lines):
        fields = text.split(",")
        if fields[1:3] == ["4", "smooth-weighted-round-robin"]:
            late_ns = int(1.2 * (int(fields[12]) - int(fields[9])))
            fields[12], fields[13] = str(int(fields[9]) + late_ns), str(late_ns / 1e6)
            lines[place] = ",".join(fields)
    (path / "rows.csv").write_text("\n".join(lines) + "\n")
    assert "block 4" in figure_text(path)


def figure_text(path):
    return inline(figures.paired_differences(compare(load(path))), "x", "x")


def test_the_same_folder_gives_the_same_page(folder):
    assert render(load(folder)) == render(load(folder))


def test_text_from_files_is_escaped(make_folder):
    edit = lambda m: m.update(command=["<script>alert(1)</script>"])  # noqa: E731
    text = write_report(make_folder(Scenario(blocks=1, requests=40), edit=edit)).read_text()
    assert "<script>" not in text and "&lt;script&gt;" in text


def test_one_block_gives_a_page_without_intervals(make_folder):
    words = Page(write_report(make_folder(Scenario(blocks=1, requests=300))).read_text()).words
    assert "One block only" in words
    assert "95 % interval −" not in words


def test_an_incomplete_bench_gives_a_page_that_says_so(make_folder):
    def interrupt(manifest):
        manifest.update(complete=False, interrupted=True)
        manifest["arms"][-1]["state"] = "running"
        manifest["arms"].append(
            {"run_id": "b03-a1", "block": 3, "label": "round-robin", "state": "planned"}
        )

    words = Page(
        write_report(make_folder(Scenario(blocks=2, requests=60), edit=interrupt)).read_text()
    ).words
    assert "The bench is incomplete (interrupted): 5 of 7 runs are here" in words
    assert "Left out, because they did not finish: b02-a3" in words


def test_a_bench_without_a_finished_run_gives_a_page(make_folder):
    path = make_folder(Scenario(blocks=1, requests=20))
    manifest = json.loads((path / "manifest.json").read_text())
    for arm in manifest["arms"]:
        arm["state"] = "planned"
    (path / "manifest.json").write_text(json.dumps(manifest))
    header = (path / "rows.csv").read_text().splitlines(keepends=True)[0]
    (path / "rows.csv").write_text(header)
    assert "No run has finished yet" in write_report(path).read_text()


def test_an_unstable_arm_is_shown_without_mean_and_rank(make_folder):
    # Everything to the two-core worker: 41 MI/ms offered, 15 possible.
    path = make_folder(Scenario(("round-robin", "overload-c"), blocks=6, requests=400))
    words = Page(write_report(path).read_text()).words
    assert "overload-c was unstable (6 of 6 runs; c was sent" in words
    assert "unstable: no mean, no rank" in words
    comparison = compare(load(path))
    assert [arm.label for arm in comparison.ranking()] == ["round-robin"]


def test_a_run_of_errors_only_gives_a_page(make_folder):
    path = make_folder(Scenario(blocks=2, requests=40, error_share=1.0))
    page = write_report(path).read_text()
    assert "No strategy can be ranked. Requests failed" in page
    assert "There was no A/A arm" not in page, "there was one, without figures"


def test_no_empty_picture_stands_where_nothing_is_compared(make_folder):
    path = make_folder(Scenario(blocks=2, requests=100, error_share=0.2))
    assert "block by block" not in write_report(path).read_text()


def test_a_late_generator_stands_on_the_page_with_its_count(make_folder):
    path = make_folder(Scenario(blocks=2, requests=60))
    lines = (path / "rows.csv").read_text().splitlines()
    for place, text in enumerate(lines):
        if text.startswith("b01-a1,"):
            fields = text.split(",")
            # 1.5 ms late, where 1 ms is tolerated at a gap of 10 ms.
            fields[10] = str(int(fields[9]) + 1_500_000)
            lines[place] = ",".join(fields)
    (path / "rows.csv").write_text("\n".join(lines) + "\n")
    assert "The generator was late in 1 of 6 runs" in Page(write_report(path).read_text()).words


def test_twenty_blocks_show_the_bootstrap(make_folder):
    path = make_folder(Scenario(blocks=20, requests=40))
    assert "bootstrap" in write_report(path).read_text()


def test_a_page_is_replaced_whole(make_folder):
    path = make_folder(Scenario(blocks=1, requests=20))
    first = write_report(path).read_text()
    assert write_report(path).read_text() == first
    assert sorted(p.name for p in path.iterdir()) == [
        "manifest.json",
        "report.html",
        "rows.csv",
        "workload.json",
    ]


def test_the_report_refuses_a_missing_folder(tmp_path):
    with pytest.raises(Problem, match="no such folder"):
        write_report(tmp_path / "nowhere")


def test_commands_print_and_exit_as_promised(folder, tmp_path, capsys):
    assert main(["summarize", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "smooth-weighted-round-robin" in text and "aa:round-robin" in text
    assert main(["summarize", str(folder), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["baseline"] == "round-robin" and len(data["runs"]) == 18
    assert main(["compare", str(folder), str(folder)]) == 0
    assert "Not paired" in capsys.readouterr().out
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out.strip().endswith("report.html")
    assert main(["report", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_lone_rows_file_can_be_summarized(folder, capsys):
    assert main(["summarize", str(folder / "rows.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete"] is None


def test_wrong_usage_exits_with_two():
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code == 2
