"""A folder of encodings is valid only once its save has ended: no row is encoded from a part of one."""

import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gpu_encode import TargetEncoder, transform_dataset
from gpu_encode.scale.engines import DistributedEncoder
from tests.scale.killed import check_killed_saves

dask = pytest.importorskip("dask", reason="the extra dask has Dask")
dd = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.host
N_ROWS = 400
# The steps are each removal, each file of lines, the record and its renaming.
KILLED = """
import shutil, sys
from pathlib import Path
from pyarrow import parquet
from tests.scale.dask import test_saving
from tests.scale.killed import die, end
path, point = sys.argv[1], int(sys.argv[2])
encoder = test_saving.fitted(1)
die(path, point, (shutil, "rmtree"), (parquet, "write_table"), (Path, "replace"))
encoder.save(path, overwrite=True)
end(0)
"""


def rows():
    return pd.DataFrame({"shop": np.arange(N_ROWS) % 150, "sold": np.arange(N_ROWS) % 7 % 2})


def fitted(flip):
    """Fit an encoder whose lines are in several buckets."""
    from gpu_encode.scale.dask import shuffle

    with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="synchronous"):
        patch.setattr(shuffle, "BUCKET_BYTES", 1 << 13)
        X = dd.from_pandas(rows(), npartitions=2)
        encoder = DistributedEncoder(TargetEncoder(columns=["shop"], device="cpu", smooth=None), tables="shuffle")
        encoder.fit(X[["shop"]], (X["sold"] + flip) % 2)
    assert len(encoder.encodings_.lines) > 2
    return encoder


@pytest.fixture
def saved(tmp_path):
    with dask.config.set(scheduler="synchronous"):
        fitted(0).save(str(tmp_path / "shops"))
        yield tmp_path / "shops"


def loaded(path):
    X = dd.from_pandas(rows()[["shop"]], npartitions=3)
    return DistributedEncoder.load(str(path)).transform(X).compute()["shop"].to_numpy()


def expected(flip):
    y = (rows()["sold"] + flip) % 2
    return (
        TargetEncoder(columns=["shop"], device="cpu", smooth=None)
        .fit(rows()[["shop"]], y)
        .transform(rows()[["shop"]])["shop"]
        .to_numpy()
    )


def test_a_saved_encoder_is_not_mixed_with_another(saved):
    with pytest.raises(FileExistsError, match="overwrite=True"):
        fitted(1).save(str(saved))
    assert np.array_equal(loaded(saved), expected(0))
    fitted(1).save(str(saved), overwrite=True)
    assert np.array_equal(loaded(saved), expected(1))


@pytest.mark.slow
def test_a_save_that_is_ended_at_any_point_is_refused_or_whole(saved):
    old, new = expected(0).tolist(), expected(1).tolist()
    check_killed_saves(KILLED, saved, fitted(1), lambda path: loaded(path).tolist(), old, new)


def lose_a_file(path):
    next(path.glob("*.parquet")).unlink()


def add_a_file(path):
    shutil.copy(next(path.glob("*.parquet")), path / "more.parquet")


def change_an_encoding(path):
    file = next(path.glob("*.parquet"))
    table = parquet.read_table(file)
    cells = table["encodings"].to_pylist()
    cells[0] = [cells[0][0] + 0.25]
    parquet.write_table(table.set_column(table.column_names.index("encodings"), "encodings", pa.array(cells)), file)


def lose_all_files(path):
    for file in path.glob("*.parquet"):
        file.unlink()


@pytest.mark.parametrize("change", [lose_a_file, lose_all_files, add_a_file, change_an_encoding])
def test_files_that_changed_since_are_refused(saved, tmp_path, change):
    change(saved / "encodings")
    with pytest.raises(ValueError, match="lines of encodings with checksum"):
        loaded(saved)
    parquet.write_table(pa.table({"shop": [1]}), tmp_path / "new.parquet")
    with pytest.raises(ValueError, match="lines of encodings with checksum"):
        transform_dataset(tmp_path / "new.parquet", tmp_path / "out.parquet", saved)


def of_other_columns(path):
    parquet.write_table(pa.table({"name": ["shop"]}), path / "joined" / "part-0.parquet")


def of_other_text(path):
    parquet.write_table(pa.table({"joined": ["shop"]}), path / "joined" / "part-0.parquet")


def of_no_table(path):
    (path / "joined" / "part-0.parquet").write_text("shop")


def a_file(path):
    shutil.rmtree(path)
    path.write_text("shop")


@pytest.mark.parametrize("change", [of_other_columns, of_other_text, of_no_table, a_file])
def test_what_another_program_has_written_is_no_encoder(saved, change):
    change(saved)
    with pytest.raises(FileNotFoundError, match="is no saved encoder"):
        loaded(saved)


def test_folders_of_earlier_versions_have_no_checksum(saved):
    from gpu_encode.scale.files.look_up import Joined

    text = Joined.read(str(saved)).to_text()
    older = text.replace(', "n_lines": ' + text.split('"n_lines": ')[1], "}")
    parquet.write_table(pa.table({"joined": [older]}), saved / "joined" / "part-0.parquet")
    assert np.array_equal(loaded(saved), expected(0))
