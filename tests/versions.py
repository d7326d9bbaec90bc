"""Versions of other libraries that some tests need, since `.ci/long` also runs the suite with older versions."""

import pytest
import sklearn
from packaging.version import Version

# These tests compare with what scikit-learn does as of 1.9; with 1.6 to 1.8 the library itself works.
as_scikit_learn_1_9 = pytest.mark.skipif(Version(sklearn.__version__) < Version("1.9"), reason="needs scikit-learn 1.9")
