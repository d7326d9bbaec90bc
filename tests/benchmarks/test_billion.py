"""`python -m benchmarks.billion` on a few thousand rows: what it draws, measures, compares and finds wrong."""

import json
import shutil
from collections import Counter
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from benchmarks.billion import definition, process
from benchmarks.billion.drawn import CATEGORIES, KEYS, SINGLE_CUSTOMERS, TARGET, Rows, scattered, zipf
from benchmarks.billion.encoding import N_FOLDS, SMOOTHING, encoder
from benchmarks.billion.generation import generate
from benchmarks.billion.verification import rows_between, verify
from cpu_fallback import row_numbers
from gpu_encode import devices, encode_dataset
from gpu_encode.schemes.base import seed_of

pytestmark = pytest.mark.skipif(devices.simulated(), reason="a benchmark of the CPU does not ask a simulator")
program = import_module("benchmarks.billion.__main__")
FEW = Rows(4_100, group_rows=500, groups_per_file=3, seed=1)


def quiet(_):
    pass


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Rows and their codes, by `encode_dataset` in this process."""
    folder = tmp_path_factory.mktemp("billion")
    generate(FEW, folder / "rows", 1, quiet)
    fitted = encoder(list(KEYS), "float64")
    encode_dataset(folder / "rows", f"{folder}/codes/", fitted, target=TARGET)
    fitted.save(folder / "encoder.model")
    return folder


@pytest.fixture
def copied(written, tmp_path):
    """The same, to be spoiled."""
    return shutil.copytree(written, tmp_path / "copied")


def checked(folder):
    return verify(FEW, folder / "rows", folder / "codes", folder / "encoder.model", "float64", 2, quiet)


def spoiled(path, change):
    pyarrow.parquet.write_table(change(pyarrow.parquet.read_table(path)), path)


@pytest.mark.slow
def test_every_step_runs_and_is_right(tmp_path, capsys):
    arguments = ["--rows", "6000", "--group-rows", "500", "--folder", str(tmp_path / "rows"), "--bare-rows", "2000"]
    assert program.main([*arguments, "--out", str(tmp_path / "out")]) == 0, capsys.readouterr().out
    found = json.loads((tmp_path / "out/billion.json").read_text())
    steps = found["steps"]
    assert set(steps) == set(program.STEPS)
    assert steps["encode"]["summary"]["rows"] == steps["verify"]["rows"] == steps["generate"]["rows"] == 6000
    assert (1 << 26) < steps["encode"]["peak"] < program.LIMIT
    assert steps["verify"]["wrong"] == steps["encode"]["wrong"] == []
    assert steps["verify"]["seen once"] > 10
    assert steps["bare"]["read all columns"]["rows"] >= 2000
    text = (tmp_path / "out/billion.md").read_text()
    for words in ("share of bare reading and writing", "measuring", "most resident memory", "have the bits of"):
        assert words in text
    assert not (tmp_path / "rows").exists()
    assert "nothing is wrong" in capsys.readouterr().out


def test_a_row_group_follows_from_the_seed_and_its_number():
    other = Rows(9_999_999, group_rows=500, groups_per_file=7, seed=1)
    assert FEW.group(3).equals(other.group(3))
    assert not FEW.group(3).equals(FEW.group(4))
    assert not FEW.group(3).equals(Rows(4_100, 500, 3, seed=2).group(3))
    assert [len(FEW.group(number)) for number in range(FEW.n_groups)] == [500] * 8 + [100]
    assert [list(FEW.groups_of(file)) for file in range(FEW.n_files)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_one_customer_and_one_product_of_each_row_group_occur_once():
    table = pa.concat_tables(FEW.group(number) for number in range(FEW.n_groups)).to_pydict()
    customers, products = Counter(table["customer"]), Counter(table["product"])
    for number in range(FEW.n_groups):
        assert customers[SINGLE_CUSTOMERS + number] == products[FEW.single_product(number)] == 1


def test_categories_are_told_apart_and_text_is_as_long_as_said():
    names = FEW.products.to_pylist()
    assert len(set(names)) == CATEGORIES["product"] + 1
    assert {len(name) for name in names} <= set(range(8, 17))
    assert len(np.unique(scattered(np.arange(1, CATEGORIES["customer"] + 1)))) == CATEGORIES["customer"]
    assert scattered(np.arange(CATEGORIES["customer"] + 1)).max() < SINGLE_CUSTOMERS


@pytest.mark.parametrize("most", [1, 2, 7, 100, 127, 128])
def test_ranks_have_shares_of_one_over_rank(most):
    drawn = zipf(np.random.default_rng(0), most, 200_000)
    shares = np.bincount(drawn, minlength=most + 1)[1:] / len(drawn)
    law = 1 / np.arange(1, most + 1)
    assert len(shares) == most
    # Five standard deviations, and far less than the law and a staircase differ.
    assert np.all(np.abs(shares - law / law.sum()) < 5 * np.sqrt(shares.max() * law / len(drawn)) + 1e-9)


@pytest.mark.parametrize("n_folds", [2, 3, 5, 6, 7])
@pytest.mark.parametrize("random_state", [0, 1, 123_456_789])
def test_the_definition_has_the_folds_of_the_library(n_folds, random_state):
    seed = definition.seed_of(random_state)
    assert seed == seed_of(random_state, "KFold")
    pattern = row_numbers.FoldPattern("random", n_folds, seed)
    for start in (0, 1023 * n_folds - 7, 2047 * n_folds - 3, 10**11 - 5):
        expected = row_numbers.fold_numbers(pattern, start, start + 300).tolist()
        assert definition.folds_of(start, start + 300, n_folds, seed).tolist() == expected
        assert [definition.fold_of(row, n_folds, seed) for row in range(start, start + 300)] == expected


def test_the_definition_of_a_code():
    assert definition.code_of(0, 0, 4, 1, SMOOTHING) == 0.25
    assert definition.code_of(10, 10, 20, 10, SMOOTHING) == 0.75
    mean, weight, prior = 1 / 3, 3 / 13, 5 / 7
    assert definition.code_of(3, 1, 7, 5, SMOOTHING) == prior + weight * (mean - prior)


def test_codes_of_the_library_are_right(written):
    found = checked(written)
    assert found["wrong"] == []
    assert found["rows"] == FEW.n_rows
    assert found["codes compared"] > FEW.n_rows
    assert found["seen once"] >= 6


def last_bit(table, name, row):
    codes = table[name].to_numpy().copy()
    codes[row] = np.nextafter(codes[row], 2)
    return table.set_column(table.column_names.index(name), name, pa.array(codes))


@pytest.mark.parametrize("name", KEYS)
def test_a_last_bit_that_is_wrong_is_found(copied, name):
    source = pyarrow.parquet.read_table(copied / "rows/rows-00001.parquet")
    # The most frequent category is always in the sample.
    frequent = {"customer": scattered(np.array([1]))[0], "product": FEW.products[1].as_py(), "channel": 1}[name]
    row = source[name].to_pylist().index(frequent)
    spoiled(copied / "codes/rows-00001.parquet", lambda table: last_bit(table, name, row))
    assert checked(copied)["wrong"] == [f"row {1500 + row}: the code of {name}, and of 0 further rows"]


def test_a_target_in_another_row_is_found(copied):
    spoiled(copied / "codes/rows-00002.parquet", lambda table: table.take([1, 0, *range(2, len(table))]))
    spoiled(
        copied / "codes/rows-00000.parquet",
        lambda table: table.set_column(3, TARGET, pa.array([*table[TARGET].to_pylist()[1:], 0], pa.int8())),
    )
    wrong = checked(copied)["wrong"]
    assert f"rows 0 to 499: {TARGET} is not that of the source" in wrong
    assert any(each.startswith("row 300") for each in wrong)


def test_rows_and_files_that_are_missing_are_found(copied):
    spoiled(copied / "codes/rows-00002.parquet", lambda table: table.slice(1))
    assert checked(copied)["wrong"] == ["rows-00002.parquet has 1099 rows, 1100 in the source"]
    (copied / "codes/rows-00001.parquet").unlink()
    assert checked(copied)["wrong"] == ["2 files of codes, whose names are not those of the 3 of the source"]


def test_a_model_of_other_rows_is_found(copied):
    table = pyarrow.parquet.read_table(copied / "rows/rows-00000.parquet")
    encoder(list(KEYS), "float64").fit(table.select(KEYS), table[TARGET]).save(copied / "encoder.model")
    assert checked(copied)["wrong"] == [f"the codes of new rows of {name}" for name in KEYS]


def test_rows_are_read_across_row_groups(tmp_path):
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pa.table({"row": range(100)}), path, row_group_size=7)
    assert rows_between(path, 20, 30)["row"].to_pylist() == list(range(20, 50))


def test_rows_that_are_there_are_not_written_again(tmp_path):
    assert generate(FEW, tmp_path / "rows", 1, quiet)["files written"] == 3
    (tmp_path / "rows/rows-00001.parquet").unlink()
    assert generate(FEW, tmp_path / "rows", 1, quiet)["files written"] == 1
    found = generate(Rows(1_000, 500, 1, seed=1), tmp_path / "rows", 2, quiet)
    assert (found["files written"], found["files"], found["rows"]) == (2, 2, 1_000)


@pytest.mark.skipif(not process.Path("/proc/self/status").exists(), reason="only Linux tells")
def test_memory_of_a_process_is_seen_after_it_was_given_back():
    taken = 300 << 20
    found, memory = process.ask("tests.benchmarks.hungry", {"bytes": taken}, 1)
    assert found == {"had": taken}
    assert taken < memory.peak < 2 * taken
    assert memory.samples[-1][1] < taken


def test_a_process_that_dies_is_wrong():
    with pytest.raises(process.ProcessFailedError, match="hungry ended with status 3 and without an answer"):
        process.ask("tests.benchmarks.hungry", {"status": 3}, 1)


def test_memory_that_grows_is_told():
    flat = process.Memory(0, samples=[(second, 100) for second in range(40)])
    grown = process.Memory(0, samples=[(second, 100 + 10 * second) for second in range(40)])
    short = process.Memory(0, samples=[(second / 10, 100) for second in range(40)])
    assert flat.later_growth() == 1.0
    assert grown.later_growth() > 1.5
    assert short.later_growth() is None


def test_too_much_memory_is_wrong(monkeypatch, tmp_path):
    given = {"summary": {"seconds": {}}}, process.Memory(0, peak=program.LIMIT)
    monkeypatch.setattr(program, "ask", lambda *_: given)
    trial = program.Trial(program.parsed(["--folder", str(tmp_path), "--out", str(tmp_path / "out")]))
    assert trial.encode()["wrong"][0].startswith("resident memory of 2,147,483,648 bytes")


def test_a_disk_without_room_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(program.shutil, "disk_usage", lambda _: SimpleNamespace(free=10**9))
    assert program.main(["--rows", "1e9", "--folder", str(tmp_path)]) == 2
    assert "has room for 1 GB; 1,000,000,000 rows take up to 48 GB" in capsys.readouterr().err


def test_few_rows_are_several_files():
    for count in (2, 3, 17, 10**4, 10**6, 10**9):
        few = program.rows_of(program.parsed(["--rows", str(count)]))
        assert few.n_files >= 2
        assert sum(len(few.groups_of(file)) for file in range(few.n_files)) == few.n_groups
        assert (few.n_groups - 1) * few.group_rows < count <= few.n_groups * few.group_rows


def test_folds_are_as_many_as_the_encoder_has():
    assert encoder(list(KEYS), "float32").cv.n_splits == N_FOLDS
    assert encoder(list(KEYS), "float32").smooth.m == SMOOTHING
