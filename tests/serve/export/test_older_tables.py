"""Tables from older versions encode rows with the bits of the models from which they were made."""

from pathlib import Path

import pyarrow.feather
import pytest

from gpu_encode.serve.export import from_arrow
from gpu_encode.serve.export.arrow import VERSION
from tests.storage.test_older_models import assert_as_expected

FOLDER = Path(__file__).parent / "older_tables"
MODELS = Path(__file__).parents[2] / "storage" / "older_models" / "0.1.0"

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]


def test_there_are_tables_of_every_format():
    assert {int(path.name) for path in FOLDER.iterdir()} == set(range(1, VERSION + 1))


@pytest.mark.parametrize("folder", sorted(FOLDER.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_older_tables_give_the_same_bits(folder):
    tables = [pyarrow.feather.read_table(path) for path in sorted(folder.iterdir())]
    assert_as_expected(from_arrow(tables), folder.name, MODELS)
