"""``python -m fednb``: the same as the command ``fednb``."""

import sys

from fednb.cli import main

sys.exit(main())
