"""Models that older versions saved give the same bits, and so does a new fit."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

from gpu_encode import ProximityEncoder, StatisticEncoder, load
from gpu_encode.storage.archive import VERSION
from tests.storage.altered import changed
from tests.storage.older_models.make import encodings_of, fitted, learn_more

VERSIONS = [path for path in sorted((Path(__file__).parent / "older_models").iterdir()) if path.name[0].isdigit()]
MODELS = [path for version in VERSIONS for path in sorted(version.glob("*.model"))]

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:Found unknown categories")]


@pytest.fixture(scope="module")
def fitted_now():
    return fitted()


def rows_of(folder: Path) -> pa.Table:
    return pyarrow.feather.read_table(folder / "rows.arrow")


def assert_as_expected(encoder, name: str, folder: Path) -> None:
    with np.load(folder / "expected.npz") as file:
        expected = {key.split("/", 1)[1]: file[key] for key in file.files if key.startswith(f"{name}/")}
    encodings = encodings_of(encoder, rows_of(folder))
    assert list(encodings) == list(expected)
    for column, values in expected.items():
        assert encodings[column].dtype == values.dtype
        assert encodings[column].tobytes() == values.tobytes(), column


def test_there_are_models_of_every_format():
    assert len(MODELS) >= len(fitted())
    formats = set()
    for path in MODELS:
        with zipfile.ZipFile(path) as archive:
            formats.add(json.loads(archive.read("model.json"))["version"])
    # Every version 1.x reads the formats that any release has written.
    assert formats == set(range(1, VERSION + 1))


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_older_models_give_the_same_bits(path, fitted_now):
    assert_as_expected(load(path), path.stem, path.parent)
    assert_as_expected(fitted_now[path.stem], path.stem, path.parent)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda path: path.name)
def test_older_models_learn_more(folder):
    encoder = learn_more(load(folder / "target.model"), rows_of(folder))
    assert_as_expected(encoder, "target, more", folder)


@pytest.mark.parametrize(
    ("encoder", "added"),
    [(ProximityEncoder(), "max_rounds"), (StatisticEncoder(), "undefined"), (StatisticEncoder(), "missing_target")],
)
def test_a_parameter_that_was_added_has_its_default(tmp_path, encoder, added):
    rows, y = [["a"], ["b"], ["a"], ["b"]], [0, 1, 1, 1]
    encoder.fit(rows, y).save(tmp_path / "new.model")
    content = changed((tmp_path / "new.model").read_bytes(), lambda document: remove_key(document, added))
    (tmp_path / "old.model").write_bytes(content)
    loaded = load(tmp_path / "old.model")
    assert loaded.get_params() == encoder.get_params()
    assert loaded.transform(rows).tolist() == encoder.transform(rows).tolist()


def remove_key(document, name):
    """Remove a key wherever it stands in a document."""
    for value in document.values() if isinstance(document, dict) else document:
        if isinstance(value, dict | list):
            remove_key(value, name)
    if isinstance(document, dict):
        document.pop(name, None)
