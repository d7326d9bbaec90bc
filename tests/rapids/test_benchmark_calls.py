"""What `benchmarks.rapids` calls of cuDF and RMM exists there, with the parameters that it gives; needs no GPU."""

import inspect
from importlib import import_module

import pytest

ANY = object()
# Where it is, positional and named arguments (the object itself included).
CALLS = [
    ("cudf:Series", (ANY,), {}),
    ("cudf:Series.astype", (ANY, "str"), {}),
    ("cudf:Series.mean", (ANY,), {}),
    ("cudf:DataFrame", (ANY,), {}),
    ("cudf:DataFrame.assign", (ANY,), {"row": ANY, "fold": ANY}),
    ("cudf:DataFrame.astype", (ANY, "float64"), {}),
    ("cudf:DataFrame.groupby", (ANY, ["a"]), {"sort": False, "observed": True}),
    ("cudf:DataFrame.memory_usage", (ANY,), {"index": False, "deep": True}),
    ("cudf:DataFrame.merge", (ANY, ANY), {"on": ["a"], "how": "left", "suffixes": ("", "_all")}),
    ("cudf:DataFrame.rename", (ANY,), {"columns": {}}),
    ("cudf:DataFrame.reset_index", (ANY,), {"drop": True}),
    ("cudf:DataFrame.sort_values", (ANY, "row"), {"ignore_index": True}),
    ("cudf:DataFrame.take", (ANY, ANY), {}),
    ("cudf:DataFrame.to_arrow", (ANY,), {"preserve_index": False}),
    ("cudf:DataFrame.to_cupy", (ANY,), {}),
    ("cudf:Series.to_cupy", (ANY,), {}),
    ("cudf.core.groupby:GroupBy.agg", (ANY, {}), {}),
    ("cudf.core.groupby:GroupBy.cumcount", (ANY,), {}),
    ("cudf.core.groupby:GroupBy.cumsum", (ANY,), {}),
    ("rmm.statistics:statistics", (), {}),
    ("rmm.statistics:get_statistics", (), {}),
]
RESOURCES = [
    "CudaAsyncMemoryResource",
    "CudaMemoryResource",
    "ManagedMemoryResource",
    "PoolMemoryResource",
    "get_current_device_resource",
    "set_current_device_resource",
]


@pytest.mark.parametrize(("place", "given", "named"), CALLS, ids=[call[0] for call in CALLS])
def test_a_call_has_the_parameters_that_it_is_given(place, given, named):
    module, path = place.split(":")
    found = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    inspect.signature(found).bind(*given, **named)


@pytest.mark.parametrize("name", RESOURCES)
def test_a_memory_resource_is_there(name):
    assert callable(getattr(import_module("rmm").mr, name))


def test_the_pool_takes_its_first_size_and_has_an_upstream():
    pool = import_module("rmm").mr.PoolMemoryResource
    assert "initial_pool_size" in pool.__doc__
    assert hasattr(pool, "upstream_mr")


def test_statistics_have_a_peak():
    assert "peak_bytes" in import_module("rmm.statistics").Statistics.__annotations__
