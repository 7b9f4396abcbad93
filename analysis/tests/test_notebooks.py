"""Every notebook runs on the sample from its first cell to its last, and is stored without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

HERE = Path(__file__).parent.parent
NOTEBOOKS = sorted((HERE / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.delenv("PLUMBLINE_RESULTS", raising=False)
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    book = nbformat.read(path, as_version=4)
    client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    figures = sum(
        "image/png" in output.get("data", {})
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert figures >= 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
