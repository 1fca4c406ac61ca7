"""``python tests/robustness`` runs every check."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from robustness.frame import main

if __name__ == "__main__":
    sys.exit(main())
