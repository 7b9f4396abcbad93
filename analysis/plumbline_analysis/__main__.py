"""``python -m plumbline_analysis``: report, summarize, compare."""

import sys

from .cli import main

sys.exit(main())
