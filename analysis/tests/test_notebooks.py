"""Every notebook runs on the sample from its first cell to its last, and is stored without outputs."""

from pathlib import Path

import nbformat
import pytest
from made_sweeps import write_findings
from nbclient import NotebookClient

HERE = Path(__file__).parent.parent
NOTEBOOKS = sorted((HERE / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04"]


def executed(path, monkeypatch, results="../sample", findings=None):
    """The notebook with its outputs."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("PLUMBLINE_FINDINGS", str(findings))
    monkeypatch.setenv("PLUMBLINE_RESULTS", str(results))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    return book


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch, tmp_path):
    book = executed(path, monkeypatch, findings=write_findings(tmp_path))
    figures = sum(
        "image/png" in output.get("data", {})
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert figures >= 1


def said(book):
    return "".join(
        output.get("text", "")
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )


def test_what_a_notebook_says_of_the_workload_follows_the_data(folder, monkeypatch):
    other = said(executed(NOTEBOOKS[0], monkeypatch, folder))
    assert "synthetic, not the paper's workload:\n20 APIs" in other
    assert "one request every 10 ms" in other


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
