"""`python -m studies.billion` on a few thousand rows: its rows, comparisons, errors and stored results."""

import json
import shutil
from importlib import import_module

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpu_encode import encode_dataset
from gpu_encode.seam import devices
from studies.billion.drawn import KEYS, TARGET, Rows, generate, scatter, zipf
from studies.billion.encoding import ask, make_encoder
from studies.billion.verification import verify

pytestmark = pytest.mark.skipif(devices.simulated(), reason="a benchmark of the CPU does not ask a simulator")
program = import_module("studies.billion.__main__")
FEW = Rows(4_100, group_rows=500, groups_per_file=3, seed=1)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Rows and their encodings, by `encode_dataset` in this process."""
    folder = tmp_path_factory.mktemp("billion")
    generate(FEW, folder / "rows", 1)
    fitted = make_encoder(KEYS, "float64")
    encode_dataset(folder / "rows", f"{folder}/encodings/", fitted, target=TARGET)
    fitted.save(folder / "encoder.model")
    return folder


@pytest.fixture
def copied(written, tmp_path):
    """The same, to be spoiled."""
    return shutil.copytree(written, tmp_path / "copied")


def check(folder):
    return verify(FEW, folder / "rows", folder / "encodings", folder / "encoder.model", "float64")


def spoil(path, change):
    pyarrow.parquet.write_table(change(pyarrow.parquet.read_table(path)), path)


def kill(*_):
    raise KeyboardInterrupt


def steps_of(folder):
    return json.loads((folder / "billion.json").read_text())["steps"]


@pytest.mark.slow
def test_every_step_runs_and_what_is_found_is_gone_on_with(tmp_path, monkeypatch):
    arguments = ["--rows", "6000", "--group-rows", "500", "--bare-rows", "2000", "--folder", str(tmp_path / "rows")]
    arguments += ["--out", str(tmp_path)]
    # Killed before the third step.
    with monkeypatch.context() as patched:
        patched.setattr(program, "verify", kill)
        with pytest.raises(KeyboardInterrupt):
            program.main(arguments)
    assert program.main([*arguments, "--only", "verify,bare"]) == 0
    steps = steps_of(tmp_path)
    assert list(steps) == list(program.STEPS)
    [encoding], [comparison] = steps["encode"]["tables"]["encoding"], steps["verify"]["tables"]["comparison"]
    assert encoding["rows"] == comparison["rows"] == 6000
    assert (1 << 26) < encoding["most resident memory, bytes"] < program.LIMIT
    assert comparison["seen once"] > 10
    assert "| measuring |" in (tmp_path / "billion.md").read_text()
    assert steps["bare"]["tables"]["share of the run"]
    # Files that are there are not written again; at the end everything goes.
    assert program.main(arguments) == 0
    assert steps_of(tmp_path)["generate"]["tables"]["rows"][0]["files written"] == 0
    assert not (tmp_path / "rows").exists()


def test_a_process_that_dies_is_wrong():
    assert ask({"work": "no such work"}, 1) == {"wrong": "its process ended with status 1"}


def test_encodings_of_the_library_are_right(written):
    found = check(written)
    assert found["wrong"] == []
    assert found["rows"] == FEW.n_rows < found["encodings compared"]
    assert found["seen once"] >= 6


@pytest.mark.parametrize("name", KEYS)
def test_a_last_bit_that_is_wrong_is_refused(copied, name):
    source = pyarrow.parquet.read_table(copied / "rows/rows-00001.parquet")
    # The most frequent category is always in the sample.
    frequent = {"customer": scatter(np.array([1]))[0], "product": FEW.products[1].as_py(), "channel": 1}[name]
    row = source[name].to_pylist().index(frequent)

    def change(table):
        found = table[name].to_numpy().copy()
        found[row] = np.nextafter(found[row], 2)
        return table.set_column(table.column_names.index(name), name, pa.array(found))

    spoil(copied / "encodings/rows-00001.parquet", change)
    assert check(copied)["wrong"] == [f"row {1500 + row}: {name}, and 0 further rows"]


def test_targets_rows_files_and_models_of_others_are_refused(copied):
    table = pyarrow.parquet.read_table(copied / "rows/rows-00000.parquet")
    make_encoder(KEYS, "float64").fit(table.select(KEYS), table[TARGET]).save(copied / "encoder.model")
    spoil(
        copied / "encodings/rows-00000.parquet",
        lambda table: table.set_column(3, TARGET, pa.array([*table[TARGET].to_pylist()[1:], 0], pa.int8())),
    )
    wrong = check(copied)["wrong"]
    assert f"rows from 0 on: {TARGET} is not that of the source" in wrong
    assert wrong[-3:] == [f"the encodings of new rows of {name}" for name in KEYS]
    spoil(copied / "encodings/rows-00002.parquet", lambda table: table.slice(1))
    assert check(copied)["wrong"][0].startswith("('rows-00002.parquet', 1099")
    (copied / "encodings/rows-00001.parquet").unlink()
    assert check(copied)["wrong"][-1] == "2 files of encodings, 3 of the source"


@pytest.mark.parametrize("most", [1, 7, 100, 128])
def test_ranks_have_shares_of_one_over_rank(most):
    drawn = zipf(np.random.default_rng(0), most, 200_000)
    shares = np.bincount(drawn, minlength=most + 1)[1:] / len(drawn)
    law = 1 / np.arange(1, most + 1)
    # Five standard deviations, and far less than the law and a staircase differ.
    assert np.all(np.abs(shares - law / law.sum()) < 5 * np.sqrt(shares.max() * law / len(drawn)) + 1e-9)
