"""Sums of Delayed objects: in a tree, so that no task holds more than a few of them, or one after another."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

SPLIT_EVERY = 8


def make_delayed(
    title: str, graph: Callable[[str], dict[str, Any]], names: Iterable[object], needed: Sequence[Any]
) -> list[Any]:
    """Give Delayed objects of tasks that are made by hand: calls of `dask.delayed` would make a layer each.

    Parameters
    ----------
    title : str
        What the tasks' names begin with.
    graph : callable
        ``graph(prefix)``: the tasks by name.
    names : iterable
        Those wanted, without prefix and hyphen.
    needed : list of Delayed
        What the tasks are made of.
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    layer = f"{title}-{uuid4().hex}"
    whole = HighLevelGraph.from_collections(layer, graph(layer), dependencies=needed)
    return [Delayed(f"{layer}-{name}", whole, layer=layer) for name in names]


def add_in_tree(promises: Sequence[Any], total: Callable[[Sequence[Any]], Any]) -> Any:
    """Give a Delayed of the sum of what at least one Delayed stands for; neighbours are added first.

    Parameters
    ----------
    promises : list of Delayed
    total : callable
        Gives the sum of a few, in the order of the promises.

    Examples
    --------
    >>> from dask import delayed
    >>> from gpu_encode.distributed.trees import add_in_tree
    >>> add_in_tree([delayed(number) for number in range(100)], sum).compute()
    4950
    """

    def tree(name: str) -> dict[str, Any]:
        graph: dict[str, Any] = {}
        keys = [promise.key for promise in promises]
        while not graph or len(keys) > 1:
            sums = []
            for start in range(0, len(keys), SPLIT_EVERY):
                sums.append(f"{name}-{len(graph)}")
                graph[sums[-1]] = (total, keys[start : start + SPLIT_EVERY])
            keys = sums
        graph[f"{name}-sum"] = keys[0]
        return graph

    return make_delayed("sum", tree, ["sum"], promises)[0]


def earlier_sums(promises: Sequence[Any]) -> list[Any]:
    """Give for each Delayed one of the sum of those before it; of the first, of None, which also counts as nothing.

    Examples
    --------
    >>> import dask
    >>> from gpu_encode.distributed.trees import earlier_sums
    >>> dask.compute(*earlier_sums([dask.delayed(number) for number in (1, None, 3, 4)]))
    (None, 1, 1, 4)
    """

    def chain(name: str) -> dict[str, Any]:
        graph: dict[str, Any] = {f"{name}-0": (plus, None, None)}
        for number, promise in enumerate(promises[:-1]):
            graph[f"{name}-{number + 1}"] = (plus, f"{name}-{number}", promise.key)
        return graph

    return make_delayed("earlier", chain, range(len(promises)), promises)


def plus(one: Any, other: Any) -> Any:
    """Add up, where None is nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
