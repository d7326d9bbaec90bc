"""Sums of Delayed objects: a total in a tree, so that no task holds more than a few, and all running sums."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any
from uuid import uuid4

SPLIT_EVERY = 8


def make_delayed(
    title: str, graph: Callable[[str], dict[str, Any]], names: Iterable[object], needed: Sequence[Any]
) -> list[Any]:
    """Give Delayed objects of tasks in one graph; calls of `dask.delayed` would make a graph layer for each.

    Parameters
    ----------
    title : str
        The names of the tasks begin with it.
    graph : callable
        ``graph(prefix)`` gives the tasks by name.
    names : iterable
        Names of the wanted tasks, without prefix and hyphen.
    needed : list of Delayed
        The Delayed objects that the tasks use.
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    layer = f"{title}-{uuid4().hex}"
    whole = HighLevelGraph.from_collections(layer, graph(layer), dependencies=needed)
    return [Delayed(f"{layer}-{name}", whole, layer=layer) for name in names]


def map_delayed(title: str, function: Callable[[Any], Any], given: Sequence[Any]) -> list[Any]:
    """Give a Delayed of ``function(each)`` for each item."""

    def graph(name: str) -> dict[str, Any]:
        return {f"{name}-{number}": (function, one.key) for number, one in enumerate(given)}

    return make_delayed(title, graph, range(len(given)), given)


def add_in_tree(promises: Sequence[Any]) -> Any:
    """Give a Delayed of the sum of one or more Delayed objects; neighbours are added first, in their order.

    Raises
    ------
    ValueError
        If there are no Delayed objects.

    Examples
    --------
    >>> from dask import delayed
    >>> from gpu_encode.scale.dask.trees import add_in_tree
    >>> add_in_tree([delayed(number) for number in range(100)]).compute()
    4950
    """
    if not promises:
        raise ValueError("There is nothing to add: the rows have no partition.")

    def tree(name: str) -> dict[str, Any]:
        graph: dict[str, Any] = {}
        keys = [promise.key for promise in promises]
        while not graph or len(keys) > 1:
            sums = []
            for start in range(0, len(keys), SPLIT_EVERY):
                sums.append(f"{name}-{len(graph)}")
                graph[sums[-1]] = (add_up, keys[start : start + SPLIT_EVERY])
            keys = sums
        graph[f"{name}-sum"] = keys[0]
        return graph

    return make_delayed("sum", tree, ["sum"], promises)[0]


def add_up(summands: Sequence[Any]) -> Any:
    """Add up a few summands; their categories are joined here, on a worker."""
    return reduce(add, summands)


def earlier_sums(promises: Sequence[Any]) -> list[Any]:
    """For each Delayed object, give the sum of all objects before it; the first sum is None, which counts as zero.

    Each sum takes at most log2(n) additions in a row, rounded up; there are fewer than 4 n additions in all.

    References
    ----------
    Ladner and Fischer (1980), Parallel Prefix Computation: the networks P_0 and P_1.

    Examples
    --------
    >>> import dask
    >>> from gpu_encode.scale.dask.trees import earlier_sums
    >>> dask.compute(*earlier_sums([dask.delayed(number) for number in (1, None, 3, 4)]))
    (None, 1, 1, 4)
    """

    def network(name: str) -> dict[str, Any]:
        graph: dict[str, Any] = {}

        def add_pair(pair: Sequence[str]) -> str:
            graph[key := f"{name}-sum-{len(graph)}"] = (plus, *pair)
            return key

        sums = running_sums([promise.key for promise in promises[:-1]], add_pair)
        return graph | {f"{name}-{number}": key for number, key in enumerate([None, *sums])}

    return make_delayed("earlier", network, range(len(promises)), promises)


def running_sums(keys: list[str], add: Callable[[Sequence[str]], str], *, by_pairs: bool = False) -> list[str]:
    """Give the sums of the first key, of the first two keys, and so on; `add` names the sum of two keys.

    The second half needs the total of the first half.  So the first half is summed by pairs: its total is then ready as
    soon as in a tree, and its other sums one step later.
    """
    if len(keys) < 2:
        return keys
    if by_pairs:
        pairs = [keys[index : index + 2] for index in range(0, len(keys), 2)]
        totals = running_sums([add(pair) if len(pair) > 1 else pair[0] for pair in pairs], add)
        # Every second key ends a pair, and so does the last key.
        return keys[:1] + [
            totals[index // 2] if index % 2 or index == len(keys) - 1 else add((totals[index // 2 - 1], keys[index]))
            for index in range(1, len(keys))
        ]
    half = -(-len(keys) // 2)
    first = running_sums(keys[:half], add, by_pairs=True)
    return first + [add((first[-1], key)) for key in running_sums(keys[half:], add)]


def plus(one: Any, other: Any) -> Any:
    """Add two sums; None counts as zero."""
    if one is None or other is None:
        return other if one is None else one
    return one + other
