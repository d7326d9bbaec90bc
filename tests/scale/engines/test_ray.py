"""Encoders take datasets of Ray: the bits of one table for all blocks, and errors that say what to write."""

import os
import signal
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gpu_encode import Holdout, KFold, LeaveOneOut, Ordered, load
from gpu_encode.scale.engines import DistributedEncoder, buckets, orders
from gpu_encode.seam import devices
from tests.scale.engines.rows import (
    ORDERS,
    SCHEMES,
    UNORDERED,
    counter,
    encoder,
    in_time,
    marked,
    oddly_named,
    rows,
    same,
)
from tests.scale.engines.sessions import code_of_page
from tests.scale.killed import check_killed_saves

ray = pytest.importorskip("ray.data", reason="the extra engines has Ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.host,
    pytest.mark.skipif(devices.simulated(), reason="other processes know nothing of the simulator's arrays"),
    # Warnings of Ray itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
]
ROOT = Path(__file__).parents[3]
BY_ID = KFold(3, by="id")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    import ray

    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ge-", dir="/tmp") as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(ROOT))
        # Otherwise each worker would load kernels.
        patch.setenv("GPU_ENCODE_COMPILE", "never")
        start(scratch)
        yield
        ray.shutdown()


def start(scratch):
    """Start Ray on two processors, with a folder for its files."""
    import ray

    # Ray would end all idle workers but two after a second, and each new one imports for seconds; beside other work,
    # workers of low priority would take minutes.
    settings = {"idle_worker_killing_time_threshold_ms": 600_000, "worker_niceness": 0}
    words = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    ray.init("local", num_cpus=2, _temp_dir=scratch, _system_config=settings, **words)
    ray.data.DataContext.get_current().enable_progress_bars = False


def dataset(n_blocks=3, table=None):
    """Give rows in blocks; the first block has none, and the second nearly all."""
    table = rows() if table is None else table
    borders = [0, 0, *range(len(table) - n_blocks + 2, len(table)), len(table)]
    return ray.from_arrow([table.slice(start, stop - start) for start, stop in pairwise(borders)])


def collect(encodings):
    """Collect rows, in whatever order they come."""
    return pa.concat_tables(batch for batch in encodings.iter_batches(batch_size=None, batch_format="pyarrow"))


def in_memory(encoder, *aside, **vectors):
    """Give the training encodings of one table."""
    return encoder.fit_transform(rows().drop_columns(list(aside)), rows()["sold"], **vectors)


@pytest.mark.filterwarnings("ignore:.* rows see no rows", "ignore::gpu_encode.LeakWarning")
@pytest.mark.parametrize("name", marked(SCHEMES, "by value"))
def test_schemes_give_the_bits_of_one_table(name):
    alone, there = encoder(SCHEMES[name]), encoder(SCHEMES[name])
    expected = in_memory(alone, "sold", "weight", sample_weight=rows()["weight"])
    found = collect(there.fit_transform(dataset(), y="sold", sample_weight="weight"))
    assert same(found, expected, "sold", "weight")
    only_fitted = encoder(SCHEMES[name]).fit(dataset(), y="sold", sample_weight="weight")
    for fitted in (there, only_fitted):
        assert all(map(np.array_equal, fitted.encodings_, alone.encodings_))


def test_names_are_no_syntax():
    table, make = oddly_named(KFold(3, by=["the.id", "shop "]))
    alone, aside = make(), ["sold?.(y)", "we`ight"]
    expected = alone.fit_transform(table.drop_columns(aside), table["sold?.(y)"], sample_weight=table["we`ight"])
    for each in (make(), DistributedEncoder(make(), tables="shuffle")):
        found = collect(each.fit_transform(dataset(table=table), "sold?.(y)", sample_weight="we`ight"))
        assert same(found, expected, *aside, by="the.id")


@pytest.fixture
def groups_of_few_rows(monkeypatch):
    monkeypatch.setattr(orders, "MOST_GROUPS", 5)
    monkeypatch.setattr(orders, "FEWEST_ROWS", 1)


@pytest.mark.usefixtures("groups_of_few_rows")
@pytest.mark.parametrize("name", ORDERS)
def test_orders_in_time_give_the_bits_of_one_table(name):
    alone, there = ORDERS[name](), ORDERS[name]()
    expected = in_memory(alone, "sold", "weight", sample_weight=rows()["weight"])
    found = collect(there.fit_transform(dataset(), y="sold", sample_weight="weight"))
    assert same(found, expected, "sold", "weight")
    assert all(map(np.array_equal, there.encodings_, alone.encodings_))


@pytest.mark.usefixtures("groups_of_few_rows")
@pytest.mark.parametrize("n_blocks", marked([1, 3, 8, 20], 3))
def test_blocks_are_cut_and_joined_at_will(n_blocks):
    given = ray.from_arrow([rows().slice(start, 203 // n_blocks + 1) for start in range(0, 203, 203 // n_blocks + 1)])
    for make in (lambda: encoder(BY_ID), in_time):
        expected = in_memory(make(), "sold")
        encodings = make().fit_transform(given.random_shuffle(seed=1), "sold")
        assert same(collect(encodings), expected, "sold")
        assert same(collect(encodings.repartition(2)), expected, "sold")


def test_blocks_of_pandas():
    pandas = pytest.importorskip("pandas")
    table = rows().drop_columns(["customer"]).to_pandas(types_mapper=pandas.ArrowDtype)
    found = counter().fit_transform(ray.from_pandas([table[:20], table[20:]]))
    assert same(collect(found), counter().fit(table).transform(rows().drop_columns(["customer"])))


def test_new_rows_keep_columns_that_fit_has_not_seen(tmp_path):
    alone = encoder(BY_ID)
    in_memory(alone, "sold")
    encoder(BY_ID).fit(dataset(), "sold").save(tmp_path / "encoder")
    new = rows(seed=4)
    found = collect(load(tmp_path / "encoder").transform(dataset(table=new)))
    assert found.column_names[-1] == "sold"
    assert same(found, alone.transform(new.drop_columns(["sold"])), "sold")


@pytest.mark.parametrize("cv", UNORDERED, ids=str)
def test_schemes_that_number_rows_say_what_to_write(cv):
    with pytest.raises(ValueError, match=r'rows of Ray .* cv=KFold\(5, by="order_id"\)'):
        encoder(cv).fit_transform(dataset(), "sold")


NUMBERED = [5, KFold(3, stratify=True), Holdout(0.3), Ordered(), Ordered(2)]
# The daily tests have each scheme once, and each number of blocks.
BLOCKS = [
    pytest.param(cv, n_blocks, marks=pytest.mark.daily if (number + n_blocks) % 2 else (), id=f"{cv}-{n_blocks}")
    for number, cv in enumerate(NUMBERED)
    for n_blocks in (3, 8)
]


@pytest.mark.parametrize(("cv", "n_blocks"), BLOCKS)
def test_blocks_that_stay_number_their_rows_as_partitions_of_dask(cv, n_blocks):
    import dask
    from ray.util.dask import ray_dask_get

    frame = dataset(n_blocks).to_dask()
    with dask.config.set(scheduler=ray_dask_get):
        found = ray.from_dask(encoder(cv).fit_transform(frame.drop(columns="sold"), frame["sold"])).to_pandas()
    pd.testing.assert_frame_equal(found, in_memory(encoder(cv), "sold").to_pandas(), check_dtype=False, rtol=0, atol=0)


@pytest.mark.daily
def test_example_of_the_page(tmp_path, monkeypatch):
    [code] = code_of_page("Ray")
    monkeypatch.chdir(tmp_path)
    visits = rows().select(["id", "shop", "sold"]).rename_columns(["visit_id", "shop", "bought"])
    ray.from_arrow(visits).write_parquet(f"{tmp_path}/visits")
    exec(code.replace('parquet("', f'parquet("{tmp_path}/'), {})
    found = ray.read_parquet(f"{tmp_path}/training")
    assert (found.count(), found.columns()) == (len(visits), ["shop", "visit_id"])


def test_what_rows_without_order_cannot_do():
    with pytest.raises(TypeError, match=r"Rows of Ray have no order that a list .* y="):
        encoder(BY_ID).fit(dataset(), [0, 1])
    fitted = encoder(BY_ID).fit(dataset(), "sold")
    for call in (fitted.partial_fit, fitted.forget):
        with pytest.raises(TypeError, match="does not take rows of Ray"):
            call(dataset(), "sold")
    with pytest.raises(ValueError, match="None of the parts has rows"):
        encoder(BY_ID).fit(ray.from_arrow(rows().slice(0, 0)), "sold")


def test_errors_of_rows_come_as_they_are():
    table = rows().append_column("gap", pa.array([None, *range(202)], pa.float64()))
    with pytest.raises(ValueError, match=r"1 missing value, in row \d+ of a batch of rows"):
        encoder(BY_ID).fit(dataset(table=table), "gap")


def shuffled(cv=BY_ID, **parameters):
    """Make an encoder whose tables stay in Ray."""
    return DistributedEncoder(encoder(cv, **parameters), tables="shuffle")


@pytest.mark.parametrize("n_blocks", marked([1, 3, 8], 3))
def test_tables_that_stay_in_ray(n_blocks, tmp_path):
    there = shuffled()
    assert same(collect(there.fit_transform(dataset(n_blocks), "sold")), in_memory(encoder(BY_ID), "sold"), "sold")
    alone, new = encoder(BY_ID).fit(rows().drop_columns(["sold"]), rows()["sold"]), rows(seed=4).drop_columns(["sold"])
    assert same(collect(there.transform(dataset(n_blocks, new))), alone.transform(new))
    there.save(str(tmp_path / "tables"))
    with pytest.raises(FileExistsError, match="overwrite=True"):
        there.save(str(tmp_path / "tables"))
    there.save(str(tmp_path / "tables"), overwrite=True)
    again = DistributedEncoder.load(str(tmp_path / "tables"))
    assert same(collect(again.transform(dataset(n_blocks, new))), alone.transform(new))
    next((tmp_path / "tables" / "encodings").glob("*.parquet")).unlink()
    with pytest.raises(ValueError, match="lines of encodings with checksum"):
        again.transform(dataset(n_blocks, new))


# The steps are each removal, the lines, the record and its renaming.
KILLED = """
import shutil, sys, tempfile
from pathlib import Path
from pyarrow import parquet
from ray.data import Dataset
from tests.scale.engines import test_ray as tests
from tests.scale.killed import die, end
path, point = sys.argv[1], int(sys.argv[2])
tests.start(tempfile.gettempdir())
encoder = tests.shuffled().fit(tests.dataset(), "held")
die(path, point, (shutil, "rmtree"), (Dataset, "write_parquet"), (parquet, "write_table"), (Path, "replace"))
encoder.save(path, overwrite=True)
end(0)
"""


def test_a_save_that_is_ended_at_any_point_is_refused_or_whole(tmp_path):
    def codes_of(encoder):
        return collect(encoder.transform(dataset())).sort_by("id")["color"].to_pylist()

    def loaded(path):
        return codes_of(DistributedEncoder.load(str(path)))

    first, second = (shuffled().fit(dataset(), target) for target in ("sold", "held"))
    first.save(str(tmp_path / "saved"))
    check_killed_saves(KILLED, tmp_path / "saved", second, loaded, codes_of(first), codes_of(second))


def test_rows_of_a_large_bucket_are_looked_up_in_pieces(monkeypatch):
    monkeypatch.setattr(buckets, "ROWS_OF_PIECE", 20)
    found = shuffled(LeaveOneOut()).fit_transform(dataset(5), "sold")
    assert same(collect(found), in_memory(encoder(LeaveOneOut()), "sold"), "sold")


def test_values_that_are_refused_while_tables_stay_in_ray():
    with pytest.raises(ValueError, match=r"'customer' holds 25 missing values, .* of a batch of rows"):
        shuffled(handle_missing="error").fit(dataset(), "sold")
    with pytest.raises(ValueError, match='tables="shuffle"'):
        shuffled(Ordered(time="day")).fit_transform(dataset(), "sold")


def by_color():
    """Make an encoder of one key whose tables stay in Ray."""
    return DistributedEncoder(encoder(BY_ID).set_params(columns=["color"]), tables="shuffle")


def test_no_new_rows_have_the_columns_of_some():
    there = by_color().fit(dataset(), "sold")
    none, some = (there.transform(dataset(2, rows().slice(0, n_rows))) for n_rows in (0, 9))
    assert (none.count(), none.schema()) == (0, some.schema())


def test_dictionaries_that_differ_and_tensors_beside_them():
    from ray.data.extensions import ArrowTensorArray

    blocks = []
    for part in (rows().slice(0, 90), rows().slice(90)):
        tensors = ArrowTensorArray.from_numpy(part["id"].to_numpy()[:, None, None] * np.ones((1, 2, 2), np.int64))
        table = part.set_column(6, "color", part["color"].combine_chunks().dictionary_encode())
        blocks.append(table.append_column("tensor", tensors))
    assert blocks[0]["color"].chunk(0).dictionary != blocks[1]["color"].chunk(0).dictionary
    found = collect(by_color().fit(ray.from_arrow(blocks), "sold").transform(ray.from_arrow(blocks)))
    shown = np.concatenate([chunk.to_numpy_ndarray() for chunk in found["tensor"].chunks])
    assert np.array_equal(shown[:, 0, 1], found["id"].to_numpy())
    alone = encoder(BY_ID).set_params(columns=["color"]).fit(rows().drop_columns(["sold"]), rows()["sold"])
    assert same(found.drop_columns(["tensor"]), alone.transform(rows().drop_columns(["sold"])), "sold")


def test_killed_workers_change_nothing(tmp_path):
    order = tmp_path / "die"

    def die_if_told(table):
        if order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return table

    dying = dataset(4).map_batches(die_if_told, batch_size=None, batch_format="pyarrow")
    order.touch()
    encodings = by_color().fit_transform(dying, "sold")
    assert not order.exists()
    order.touch()
    expected = in_memory(encoder(BY_ID).set_params(columns=["color"]), "sold")
    assert same(collect(encodings), expected, "sold")
    assert not order.exists()


@pytest.mark.daily
def test_a_preprocessor_gives_training_rows_training_encodings():
    from ray.data.preprocessor import Preprocessor
    from ray.data.preprocessors import Chain, MinMaxScaler

    from gpu_encode.engines import RayEncoder

    alone, given, new = encoder(BY_ID), dataset(), rows(seed=4)
    training = alone.fit_transform(rows().drop_columns(["sold"]), rows()["sold"])
    encoded = RayEncoder(encoder(BY_ID), y="sold")
    chain = Chain(encoded, MinMaxScaler(columns=["color"]))
    scaled = collect(chain.fit_transform(given)).sort_by("id")["color"].to_numpy()
    expected = training.sort_by("id")["color"].to_numpy()
    # The scaler, too, was fitted to training encodings.
    assert np.allclose(scaled, (expected - expected.min()) / np.ptp(expected), rtol=1e-12)
    assert same(collect(encoded.transform(given)), training, "sold")
    of_new = alone.transform(new.drop_columns(["sold"]))
    assert same(collect(encoded.transform(dataset(table=new))), of_new, "sold")
    elsewhere = Preprocessor.deserialize(encoded.serialize())
    for other in (encoded, elsewhere):
        batch = new.to_pandas().set_index(np.arange(len(new))[::-1])
        found = other.transform_batch(batch)
        assert same(pa.Table.from_pandas(found, preserve_index=False), of_new, "sold")
        assert list(found.index) == list(batch.index)
    # Elsewhere all rows are new.
    as_new = alone.transform(rows().drop_columns(["sold"]))
    assert same(collect(elsewhere.transform(given)), as_new, "sold")
    assert not hasattr(encoded.encoder, "encodings_")


def test_a_preprocessor_whose_tables_lie_in_ray_encodes_no_batch():
    from gpu_encode.engines import RayEncoder

    for tables in ("shuffle", "broadcast"):
        encoded = RayEncoder(DistributedEncoder(encoder(BY_ID), tables=tables), y="sold").fit(dataset())
        if tables == "broadcast":
            assert len(encoded.transform_batch(rows().to_pandas())) == len(rows())
            continue
        with pytest.raises(TypeError, match="transform_batch needs"):
            encoded.transform_batch(rows().to_pandas())
