"""``python tests/random_kernels`` runs random kernels."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from random_kernels.command import main

if __name__ == "__main__":
    sys.exit(main())
