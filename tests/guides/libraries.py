"""The libraries for guides and examples: cuDF if the suites run on a GPU with cuDF, otherwise pandas."""

from importlib.util import find_spec

import pytest

from tests.backends import ON_CUDA

ON_CUDF = "cuda" in ON_CUDA and find_spec("cudf") is not None


def require_modules(*modules):
    """Skip a test if a machine with a GPU lacks a library; the extra "test" installs it on all other machines."""
    for module in modules if ON_CUDF else ():
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: the extra workflows-cu13, or workflows-cu12, has it")
