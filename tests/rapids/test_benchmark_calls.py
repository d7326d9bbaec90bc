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
    ("cudf:Series.to_cupy", (ANY,), {}),
    ("cudf:DataFrame", (ANY,), {}),
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
    ("cudf.core.groupby:GroupBy.agg", (ANY, {}), {}),
    ("cudf.core.groupby:GroupBy.cumcount", (ANY,), {}),
    ("rmm.statistics:statistics", (), {}),
    ("rmm.statistics:get_statistics", (), {}),
]
RESOURCES = [
    "CudaAsyncMemoryResource",
    "CudaMemoryResource",
    "PoolMemoryResource",
    "StatisticsResourceAdaptor",
    "set_current_device_resource",
]
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


@pytest.mark.parametrize(
    ("place", "given", "named"),
    [
        ("cudf:DataFrame.merge", (ANY, ANY), {"onto": ["a"]}),
        ("cudf:Series.mean", (ANY,), {"unheard_of": True}),
        ("cudf.core.groupby:GroupBy.agg", (ANY, {}, "more"), {}),
    ],
)
def test_parameters_that_are_not_there_are_noticed(place, given, named):
    with pytest.raises((TypeError, AssertionError), match=r"onto|caught by"):
        bound(found(place), given, named)


def test_groups_are_summed_counted_and_scanned_by_these_names():
    by_name = import_module("cudf.core._internals.aggregation").Aggregation
    assert all(callable(getattr(by_name, name)) for name in ("count", "sum"))
    assert not hasattr(by_name, "counts")
    assert "cumsum" in import_module("cudf.core.groupby").GroupBy._VALID_SCANS


@pytest.mark.parametrize("how", ["left", "leftmost"])
def test_a_left_merge_is_one_of_the_kinds(how):
    check = import_module("cudf.core.join.join").Merge._validate_merge_params
    # Frames that are made hold memory of a GPU.
    left, right = (object.__new__(import_module("cudf").DataFrame) for _ in range(2))
    given = {"on": ["a"], "left_on": None, "right_on": None, "left_index": False, "right_index": False}
    if how == "left":
        check(left, right, **given, how=how, suffixes=("", "_all"))
    else:
        with pytest.raises(NotImplementedError, match="leftmost merge not supported"):
            check(left, right, **given, how=how, suffixes=("", "_all"))


def test_values_are_a_property():
    assert isinstance(found("cudf:Series.values"), property)


@pytest.mark.parametrize("name", RESOURCES)
def test_a_memory_resource_is_there(name):
    assert callable(getattr(import_module("rmm").mr, name))


def test_the_pool_takes_its_first_size_and_has_an_upstream():
    pool = import_module("rmm").mr.PoolMemoryResource
    assert "initial_pool_size" in pool.__doc__
    assert hasattr(pool, "upstream_mr")


def test_what_is_in_use_is_counted_without_a_gap():
    # Bytes in use stay those of all frames while a peak is watched: counters are pushed onto the ones before.
    adaptor = import_module("rmm").mr.StatisticsResourceAdaptor
    assert all(hasattr(adaptor, name) for name in ("allocation_counts", "push_counters", "pop_counters", "upstream_mr"))
    assert {"current_bytes", "peak_bytes"} <= set(import_module("rmm.statistics").Statistics.__annotations__)
