"""Settings for all tests."""

import os

from hypothesis import settings

# No deadlines: speed is measured in bench/. On a shared runner every run tries the same examples.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")
