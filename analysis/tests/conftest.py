"""Rows and folders for the tests, made by hand or by the seeded generator."""

import json

import pytest

from plumbline_analysis.rows import COLUMNS
from plumbline_analysis.synthetic import Scenario, write_folder


def line(**values) -> str:
    """One ok row of 50 ms on worker a, with what a test changes."""
    seq = values.get("seq", 0)
    intended = values.pop("intended_ns", seq * 10_000_000)
    latency_ms = values.pop("latency_ms", 50.0)
    row = {
        "run_id": "b01-a1",
        "block": 1,
        "strategy": "round-robin",
        "seq": seq,
        "api_id": "api-001",
        "method": "GET",
        "url": "/users/orders",
        "task_size_mi": 400.0,
        "warmup": "false",
        "intended_ns": intended,
        "sent_ns": intended + 50_000,
        "first_byte_ns": "",
        "done_ns": "" if latency_ms == "" else intended + round(latency_ms * 1e6),
        "latency_ms": latency_ms,
        "status": 200,
        "error": "",
        "container": "a",
        "cores": 4,
    }
    row.update(values)
    return ",".join(str(row.get(name, "")) for name in COLUMNS)


def rows_text(lines: list[str]) -> str:
    return "\n".join([",".join(COLUMNS), *lines]) + "\n"


@pytest.fixture
def write_rows(tmp_path):
    """Writes a rows.csv of the given lines and returns its path."""

    def write(lines: list[str], tail: str = ""):
        path = tmp_path / "rows.csv"
        path.write_text(rows_text(lines) + tail, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Six blocks of round robin and smooth weighted round robin with their A/A arm."""
    return write_folder(tmp_path_factory.mktemp("results") / "plain", Scenario())


@pytest.fixture
def make_folder(tmp_path):
    """Makes a folder from a scenario; ``edit`` may change the manifest."""

    def make(scenario: Scenario, name: str = "run", edit=None):
        path = write_folder(tmp_path / name, scenario)
        if edit:
            target = path / "manifest.json"
            manifest = json.loads(target.read_text())
            edit(manifest)
            target.write_text(json.dumps(manifest))
        return path

    return make
