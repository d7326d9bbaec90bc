"""What `benchmarks.rapids` calls of cuDF and RMM exists there, with the parameters that it gives; needs no GPU."""

import inspect
from importlib import import_module

import pytest

ANY = object()
# Where it is, positional and named arguments (the object itself included).
CALLS = [
    ("cudf:Series", (ANY,), {}),
    ("cudf:Series.astype", (ANY, "str"), {}),
    ("cudf:Series.to_cupy", (ANY,), {}),
    ("cudf:DataFrame", (ANY,), {}),
    ("cudf:DataFrame.astype", (ANY, "float64"), {}),
    ("cudf:DataFrame.groupby", (ANY, ["a"]), {"sort": False, "observed": True}),
    ("cudf:DataFrame.merge", (ANY, ANY), {"on": ["a"], "how": "left", "suffixes": ("", "_all")}),
    ("cudf:DataFrame.rename", (ANY,), {"columns": {}}),
    ("cudf:DataFrame.reset_index", (ANY,), {"drop": True}),
    ("cudf:DataFrame.sort_values", (ANY, "row"), {"ignore_index": True}),
    ("cudf:DataFrame.take", (ANY, ANY), {}),
    ("cudf:DataFrame.to_arrow", (ANY,), {"preserve_index": False}),
    ("cudf:DataFrame.to_cupy", (ANY,), {}),
    ("cudf.core.groupby:GroupBy.agg", (ANY, {}), {}),
    ("cudf.core.groupby:GroupBy.cumcount", (ANY,), {}),
    ("rmm.statistics:statistics", (), {}),
    ("rmm.statistics:get_statistics", (), {}),
]
RESOURCES = ["CudaMemoryResource", "PoolMemoryResource", "StatisticsResourceAdaptor", "set_current_device_resource"]
CATCH_ALL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def found(place):
    """Give what is at a place such as "cudf:Series.astype"."""
    module, path = place.split(":")
    there = import_module(module)
    for name in path.split("."):
        there = getattr(there, name)
    return there


def bound(call, given, named):
    """Bind arguments to parameters of their own; one that `*args` or `**kwargs` catches tells nothing."""
    signature = inspect.signature(call)
    caught = [
        name for name in signature.bind(*given, **named).arguments if signature.parameters[name].kind in CATCH_ALL
    ]
    assert not caught, f"caught by {caught}"


@pytest.mark.parametrize(("place", "given", "named"), CALLS, ids=[call[0] for call in CALLS])
def test_a_call_has_the_parameters_that_it_is_given(place, given, named):
    bound(found(place), given, named)


def test_groups_are_summed_counted_and_scanned_by_these_names():
    by_name = import_module("cudf.core._internals.aggregation").Aggregation
    assert all(callable(getattr(by_name, name)) for name in ("count", "sum"))
    assert not hasattr(by_name, "counts")
    assert "cumsum" in import_module("cudf.core.groupby").GroupBy._VALID_SCANS


def test_values_are_a_property():
    assert isinstance(found("cudf:Series.values"), property)


def test_memory_of_the_pool_is_counted_without_a_gap():
    memory = import_module("rmm").mr
    assert all(callable(getattr(memory, name)) for name in RESOURCES)
    assert "initial_pool_size" in memory.PoolMemoryResource.__doc__
    # Bytes in use stay those of all frames while a peak is watched: counters are pushed onto the ones before.
    adaptor = memory.StatisticsResourceAdaptor
    assert all(hasattr(adaptor, name) for name in ("allocation_counts", "push_counters", "pop_counters"))
    assert {"current_bytes", "peak_bytes"} <= set(import_module("rmm.statistics").Statistics.__annotations__)
