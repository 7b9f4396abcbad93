"""One result folder in memory: the manifest that says what ran, and the rows that count.

The manifest is read as plain JSON: fields that later versions add are kept, fields that the
reader leans on must be there. Rows of an arm that the manifest does not call done are left out
and named, so that half an arm never becomes a mean.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from .problem import Problem
from .rows import read_rows

MANIFEST_SCHEMA = "plumbline.manifest/1"
AA_PREFIX = "aa:"
NEEDED = (
    "arms",
    "strategies",
    "complete",
    "workload",
    "burn",
    "host",
    "versions",
    "command",
    "seed",
)


@dataclass(frozen=True)
class Results:
    """A result folder, or a lone rows.csv (then ``manifest`` is empty)."""

    path: Path
    manifest: dict
    rows: pd.DataFrame
    left_out: list[str] = field(default_factory=list)
    """Runs in rows.csv that the manifest does not call done."""

    @property
    def labels(self) -> list[str]:
        """Arms in the order of the manifest's strategies, the A/A arm last."""
        present = [str(label) for label in self.rows["strategy"].unique()]
        if not self.manifest:
            return present
        planned = list(dict.fromkeys(arm["label"] for arm in self.manifest["arms"]))
        order = [s for s in self.manifest["strategies"] if s in planned]
        order = list(dict.fromkeys(order + planned + present))
        plain = [label for label in order if not is_aa(label)]
        return [x for x in plain + [x for x in order if is_aa(x)] if x in present]

    @property
    def baseline(self) -> str:
        """The first strategy named."""
        return self.labels[0] if self.labels else ""

    @property
    def mips_per_core(self) -> float | None:
        """Pinned speed of one core, MIPS."""
        return self.manifest.get("burn", {}).get("mips_per_core")

    @property
    def workers(self) -> list[str]:
        """Worker names: those of the manifest, else those that answered."""
        named = [w["name"] for w in self.manifest.get("backend", {}).get("workers", [])]
        seen = sorted({str(c) for c in self.rows["container"].dropna().unique() if str(c)})
        return named + [name for name in seen if name not in named]


def is_aa(label: str) -> bool:
    """True for the second appearance of the baseline."""
    return label.startswith(AA_PREFIX)


def load(path: Path | str) -> Results:
    """Reads a result folder (``manifest.json`` and ``rows.csv``) or a lone rows file."""
    path = Path(path)
    if path.is_file():
        return Results(path, {}, read_rows(path))
    if not path.is_dir():
        raise Problem(
            str(path), "no such file or folder", next_step="name a result folder of `testbed bench`"
        )
    manifest = read_manifest(path / "manifest.json")
    _check_digests(path / "rows.csv", manifest)
    rows = read_rows(path / "rows.csv")
    done = {arm["run_id"] for arm in manifest["arms"] if arm["state"] == "done"}
    counts = rows["run_id"].isin(done)
    left_out = sorted(set(rows.loc[~counts, "run_id"].astype(str)))
    rows = rows[counts].reset_index(drop=True)
    _check_counts(path, manifest, rows)
    return Results(path, manifest, rows, left_out)


def read_manifest(path: Path) -> dict:
    """The manifest as a dictionary, its schema and the needed fields checked."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise Problem(
            str(path), "no such file", next_step="name a result folder of `testbed bench`"
        ) from error
    except json.JSONDecodeError as error:
        raise Problem(f"{path}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise Problem(str(path), "not UTF-8") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != MANIFEST_SCHEMA:
        got = manifest.get("schema") if isinstance(manifest, dict) else type(manifest).__name__
        raise Problem(str(path), f"allowed: {MANIFEST_SCHEMA}", field="schema", value=repr(got))
    for name in NEEDED:
        if name not in manifest:
            raise Problem(str(path), "is missing", field=name)
    for place, arm in enumerate(manifest["arms"]):
        for name in ("run_id", "block", "label", "state"):
            if name not in arm:
                raise Problem(str(path), "is missing", field=f"arms[{place}].{name}")
    return manifest


def _check_digests(path: Path, manifest: dict) -> None:
    """The rows of every finished arm are those that were recorded.

    An arm's digest is of its part of the file: the header and its own lines, in their order. A folder
    whose manifest has no digests, such as one of computed rows, has nothing to be checked against.
    """
    wanted = {
        arm["run_id"]: arm["rows_sha256"]
        for arm in manifest["arms"]
        if arm["state"] == "done" and arm.get("rows_sha256")
    }
    if not wanted or not path.is_file():
        return
    found: dict[bytes, list] = {}
    with path.open("rb") as lines:
        header = next(lines, b"")
        for line in lines:
            if not line.endswith(b"\n"):
                break
            own = found.setdefault(line.partition(b",")[0], [hashlib.sha256(header), 0])
            own[0].update(line)
            own[1] += 1
    counts = {arm["run_id"]: arm.get("rows") for arm in manifest["arms"]}
    for run_id, digest in wanted.items():
        hashed, rows = found.get(run_id.encode(), [hashlib.sha256(header), 0])
        if hashed.hexdigest() == digest:
            continue
        cut = counts[run_id] is not None and counts[run_id] != rows
        raise Problem(
            str(path),
            f"{rows} rows of {counts[run_id]}"
            if cut
            else "rows have changed since they were recorded",
            field=run_id,
            next_step="bring the recorded file back; changed rows can be judged by themselves, "
            "outside the folder: summarize FILE.csv",
        )


def _check_counts(path: Path, manifest: dict, rows: pd.DataFrame) -> None:
    """Every finished arm has exactly the rows it says it has, under its own label and block."""
    counts = rows.groupby("run_id", observed=True).size()
    firsts = rows.groupby("run_id", observed=True)[["strategy", "block"]].first()
    for arm in manifest["arms"]:
        if arm["state"] != "done":
            continue
        got, want = int(counts.get(arm["run_id"], 0)), arm.get("rows")
        if want is not None and got != want:
            raise Problem(
                str(path / "rows.csv"),
                f"{got} rows, the manifest says {want}",
                field=arm["run_id"],
                next_step="resume the bench to run that arm again",
            )
        if got and str(firsts.loc[arm["run_id"], "strategy"]) != arm["label"]:
            raise Problem(
                str(path / "rows.csv"),
                f"the manifest says {arm['label']}",
                field=f"strategy of {arm['run_id']}",
                value=str(firsts.loc[arm["run_id"], "strategy"]),
            )
