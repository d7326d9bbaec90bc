"""``python -m gpu_encode``: the same as the command ``gpu-encode``."""

import sys

from gpu_encode.cli import main

sys.exit(main())
