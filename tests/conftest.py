"""Settings of every suite."""

import os

from hypothesis import settings

# The first call of a kernel compiles it, and machines of continuous integration are slow: no deadline means anything.
settings.register_profile("default", deadline=None)
# The same examples every time, so that a red run is red again.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
