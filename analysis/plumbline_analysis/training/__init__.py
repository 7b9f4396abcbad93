"""Trains latency models on recorded rows and writes them as table files for the balancer.

Follows the predictive balancer of Eng. Proc. 2026, 122(1), 26: CatBoost on method, URL, cores,
memory and two run-time statistics. Needs the packages of ``requirements.txt`` in this folder; the
rest of ``plumbline_analysis`` does without them.
"""

from .dataset import Dataset, read_dataset
from .export import build_table
from .fit import Fitted, Variant, fit
from .tablefile import Table, read_table, write_table

__all__ = [
    "Dataset",
    "Fitted",
    "Table",
    "Variant",
    "build_table",
    "fit",
    "read_dataset",
    "read_table",
    "write_table",
]
