"""``python -m plumbline_analysis.training``: train, tune, export, verify."""

import sys

from .cli import main

sys.exit(main())
