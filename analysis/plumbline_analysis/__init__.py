"""Reads Plumbline's result folders: which strategy is better, by how much, how sure are we.

``load`` reads a folder strictly, ``summarize`` makes one line per run, ``compare`` pairs runs
within blocks, ``report`` writes the page. Rows are the only source: the numbers a binary printed
are checked against them, never used.
"""

from .compare import Comparison, Difference, compare, compare_folders
from .load import Results, load
from .problem import Problem
from .summarize import Arm, Run, summarize

__version__ = "0.1.0"
__all__ = [
    "Arm",
    "Comparison",
    "Difference",
    "Problem",
    "Results",
    "Run",
    "compare",
    "compare_folders",
    "load",
    "summarize",
]
