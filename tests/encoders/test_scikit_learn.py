"""scikit-learn's own tests of its TargetEncoder, run with ours, and its checks of estimators."""

import pytest
from sklearn.preprocessing.tests import test_target_encoder as theirs

from gpu_encode import TargetEncoder
from tests.versions import as_scikit_learn_1_9

theirs.TargetEncoder = TargetEncoder
pytestmark = [pytest.mark.host, as_scikit_learn_1_9]

EXCEPTIONS = {
    # shuffle and random_state are not deprecated here.
    "test_target_encoder_shuffle_random_state_deprecated",
}
# Tens of thousands of rows.
pytest.mark.long(theirs.test_target_encoding_for_linear_regression)

globals().update(
    {name: function for name, function in vars(theirs).items() if name.startswith("test_") and name not in EXCEPTIONS}
)


@pytest.fixture
def global_random_seed() -> int:
    """The seed fixture that scikit-learn's tests need."""
    return 42
