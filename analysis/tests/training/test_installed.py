import importlib.util
import os
from importlib.metadata import version
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parents[2] / "plumbline_analysis" / "training" / "requirements.txt"


def test_the_pinned_packages_are_installed():
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if line[:1] not in ("", "#")]
    pinned = [line.split("==") for line in lines]
    assert len(pinned) > 10
    if importlib.util.find_spec("catboost") is None and not os.environ.get("CI"):
        pytest.skip("no tests of the training: `make test` installs what it needs")
    assert {name: version(name) for name, _ in pinned} == dict(pinned)
