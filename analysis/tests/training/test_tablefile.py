import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from plumbline_analysis.problem import Problem
from plumbline_analysis.training.tablefile import (
    Table,
    from_bytes,
    read_table,
    representatives,
    to_bytes,
    write_table,
)

FIXTURES = Path(__file__).parents[3] / "crates" / "predictor" / "fixtures"


def header(first=(1.5,), second=(40.0, 80.5)) -> dict:
    return {
        "schema": "plumbline.latency-table/1",
        "axes": [
            {"feature": "active", "borders": list(first)},
            {"feature": "mean50", "borders": list(second)},
        ],
        "containers": [{"cores": 4.0, "memory_gb": 12.0}, {"cores": 2.0, "memory_gb": 6.0}],
        "apis": [
            {"method": "GET", "url": "/überall"},
            {"method": "GET", "url": None},
            {"method": None, "url": None},
        ],
    }


def small() -> Table:
    return Table(header(), np.arange(36.0).reshape(3, 2, 2, 3) + 0.5)


def by_hand(head: bytes, cells: list[float]) -> bytes:
    body = b"PLBTAB01" + struct.pack("<I", len(head)) + head
    while len(body) % 8:
        body += b"\0"
    body += struct.pack(f"<{len(cells)}d", *cells)
    return body + hashlib.sha256(body).digest()


def test_the_bytes_are_those_of_the_layout():
    table = small()
    head = json.dumps(table.header, ensure_ascii=False).encode()
    assert to_bytes(table) == by_hand(head, [i + 0.5 for i in range(36)])


def test_what_is_written_is_read_again(tmp_path):
    write_table(small(), tmp_path / "t.plbtab")
    table = read_table(tmp_path / "t.plbtab")
    assert table.header == header() and (table.cells == small().cells).all()
    assert [p.name for p in tmp_path.iterdir()] == ["t.plbtab"]


def test_look_ups_use_the_cell_below_or_on_the_border():
    table = small()
    # ((api * 2 + container) * 2 + bin of active) * 3 + bin of mean50, and a half
    assert table.predict(0, 0, 1.5, 40.0) == 0.5
    assert table.predict(0, 1, 2, 40.000004) == ((0 * 2 + 1) * 2 + 1) * 3 + 1 + 0.5
    assert table.predict(2, 1, 99, 1e9) == 35.5
    assert table.predict(1, 0, 0, 80.5) == (1 * 2 * 2) * 3 + 1 + 0.5
    assert [table.api("GET", "/überall?x"), table.api("GET", "/"), table.api("PUT", "/")] == [
        0,
        1,
        2,
    ]
    assert [table.container(c, 0) for c in (64, 4, 3.1, 1)] == [0, 0, 0, 1]


def test_every_bin_is_represented_by_its_border_and_the_last_by_the_next_f32():
    values = representatives(np.array([0.5, 100.0], np.float32))
    assert values.tolist() == [0.5, 100.0, 100.00000762939453]
    assert representatives(np.array([], np.float32)).tolist() == [0.0]


def test_damage_is_refused(tmp_path):
    data = to_bytes(small())
    for place in range(0, len(data), 7):
        broken = bytearray(data)
        broken[place] ^= 1 << place % 8
        with pytest.raises(Problem):
            from_bytes(bytes(broken))
        with pytest.raises(Problem):
            from_bytes(data[:place])
    for head, cells, what in [
        (b"{}", [], "header is not as expected"),
        (b"{", [], "header is not as expected"),
        (json.dumps(header() | {"schema": "x"}).encode(), [0.0] * 36, "schema"),
        (json.dumps(header()).encode(), [0.0] * 35, "35 cells where the header makes 36"),
        (json.dumps(header()).encode(), [0.0] * 35 + [float("nan")], "cell 35: must be finite"),
    ]:
        with pytest.raises(Problem, match=what):
            from_bytes(by_hand(head, cells))
    with pytest.raises(Problem, match="no such file"):
        read_table(tmp_path / "none")


def test_a_table_beyond_the_limit_is_not_written(tmp_path):
    cells = np.zeros((3, 2, 1000, 1500))
    borders = np.arange(1499.0).tolist()
    with pytest.raises(Problem, match="border_count"):
        write_table(Table(header(borders[:999], borders), cells), tmp_path / "t")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["early-stopped", "combinations"])
def test_a_stored_table_is_written_back_to_the_same_bytes(name):
    data = (FIXTURES / f"{name}.plbtab").read_bytes()
    assert to_bytes(from_bytes(data)) == data
