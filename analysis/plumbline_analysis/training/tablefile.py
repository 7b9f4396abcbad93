"""The table file that the balancer loads: every prediction of a model, by API, container and two inputs.

Little-endian: magic | u32 header length | header as JSON | zeros up to a multiple of 8 bytes | f64
cells | SHA-256 of everything before it. The cell of an API, a container and two bins is
``((api * containers + container) * bins0 + bin0) * bins1 + bin1``; the bin of x is the number of
borders below x, compared as f32. The crate ``predictor`` has the other reader.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..problem import Problem

MAGIC = b"PLBTAB01"
SCHEMA = "plumbline.latency-table/1"
MAX_FILE_BYTES = 64 * 1024 * 1024
DIGEST_BYTES = 32


@dataclass(frozen=True)
class Table:
    """A header and its cells, of shape (APIs, containers, bins of the first axis, of the second)."""

    header: dict
    cells: np.ndarray

    def api(self, method: str, url: str) -> int:
        """Place of an API; the stand-in of its method, else of everything, for unknown ones."""
        path = url.partition("?")[0]
        names = [(a["method"], a["url"]) for a in self.header["apis"]]
        for name in ((method, path), (method, None), (None, None)):
            if name in names:
                return names.index(name)
        raise ValueError("a table has a stand-in for everything")

    def container(self, cores: float, memory_gb: float) -> int:
        """Place of a container; the nearest in cores, then in memory, for unknown ones."""
        shapes = self.header["containers"]
        return min(
            range(len(shapes)),
            key=lambda i: (
                abs(shapes[i]["cores"] - cores),
                abs(shapes[i]["memory_gb"] - memory_gb),
            ),
        )

    def bin(self, axis: int, x: np.ndarray | float) -> np.ndarray:
        """Number of borders below x, compared as f32."""
        borders = np.array(self.header["axes"][axis]["borders"], np.float32)
        return np.searchsorted(borders, np.asarray(x, np.float32), side="left")

    def predict(self, api: int, container: int, first: float, second: float) -> float:
        """Predicted latency, ms."""
        return float(self.cells[api, container, self.bin(0, first), self.bin(1, second)])


def representatives(borders: np.ndarray) -> np.ndarray:
    """A value of every bin, f32: its upper border, and one f32 above the last border for the last."""
    last = np.nextafter(borders[-1:], np.float32(np.inf)) if len(borders) else np.zeros(1)
    return np.concatenate([borders, last]).astype(np.float32)


def shape_of(header: dict) -> tuple[int, int, int, int]:
    """Shape of the cells a header makes."""
    first, second = (len(axis["borders"]) + 1 for axis in header["axes"])
    return len(header["apis"]), len(header["containers"]), first, second


def to_bytes(table: Table) -> bytes:
    """The file's bytes."""
    header = json.dumps(table.header, ensure_ascii=False, allow_nan=False).encode()
    body = MAGIC + len(header).to_bytes(4, "little") + header
    body += bytes(-len(body) % 8)
    size = len(body) + table.cells.size * 8 + DIGEST_BYTES
    if size > MAX_FILE_BYTES:
        raise Problem(
            "table",
            f"{size} bytes (allowed: at most {MAX_FILE_BYTES})",
            next_step="train with a smaller border_count, such as 128",
        )
    body += np.ascontiguousarray(table.cells, "<f8").tobytes()
    return body + hashlib.sha256(body).digest()


def write_table(table: Table, path: Path) -> None:
    """Writes the file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_bytes(to_bytes(table))
    part.replace(path)


def read_table(path: Path | str) -> Table:
    """Reads a file; refuses one that is damaged."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise Problem(str(path), "no such file", next_step="name a table file") from error
    return from_bytes(data, str(path))


def from_bytes(data: bytes, where: str = "table") -> Table:
    """A table from a file's bytes; ``where`` names it in messages."""
    if data[:8] != MAGIC:
        raise Problem(where, "this is no latency table", field="bytes 0..8")
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if len(data) > MAX_FILE_BYTES or hashlib.sha256(body).digest() != digest:
        raise Problem(where, "damaged or cut short", next_step="export the model again")
    end = 12 + int.from_bytes(data[8:12], "little")
    try:
        header = json.loads(body[12:end])
        shape = shape_of(header)
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(where, f"the header is not as expected: {error}") from error
    if header.get("schema") != SCHEMA:
        raise Problem(where, f"allowed: {SCHEMA}", field="schema", value=repr(header.get("schema")))
    cells = np.frombuffer(body[end + -end % 8 :], "<f8")
    if cells.size != np.prod(shape):
        raise Problem(
            where, f"{cells.size} cells where the header makes {np.prod(shape)}", field="cells"
        )
    if not np.isfinite(cells).all():
        raise Problem(where, "must be finite", field=f"cell {int(np.argmin(np.isfinite(cells)))}")
    return Table(header, cells.reshape(shape))
