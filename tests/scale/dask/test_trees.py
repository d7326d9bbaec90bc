"""Sums of Delayed objects: the order of the objects is kept, and each sum takes few steps."""

from itertools import accumulate

import pytest

from gpu_encode.scale.dask.trees import add_in_tree, earlier_sums, plus, running_sums

dask = pytest.importorskip("dask", reason="the extra dask has Dask")


@pytest.mark.parametrize("number", [*range(1, 40), 64, 65, 1500])
def test_running_sums_wait_for_few_others(number):
    steps, texts = {}, {str(place): chr(97 + place % 26) for place in range(number)}

    def add(pair):
        key = f"sum {len(steps)}"
        steps[key] = 1 + max(steps.get(summand, 0) for summand in pair)
        texts[key] = "".join(map(texts.get, pair))
        return key

    sums = running_sums([str(place) for place in range(number)], add)
    assert [texts[key] for key in sums] == list(accumulate(texts[str(place)] for place in range(number)))
    # As many steps as a tree takes to the last sum alone: 11 for 1,500.
    assert max(steps.values(), default=0) == (number - 1).bit_length()
    assert len(steps) < 4 * number


@pytest.mark.parametrize("number", [1, 2, 7])
def test_earlier_sums_are_of_those_before(number):
    items = [None if place == 1 else chr(97 + place) for place in range(number)]
    expected = [None, *accumulate(items, plus)][:number]
    assert list(dask.compute(*earlier_sums(list(map(dask.delayed, items))), scheduler="synchronous")) == expected


def test_a_sum_of_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to add"):
        add_in_tree([])
