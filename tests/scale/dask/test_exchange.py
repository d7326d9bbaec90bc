"""Pieces from all senders reach their receivers, ordered by sender."""

import pytest

from gpu_encode.scale.dask.exchange import exchange, pack

dask = pytest.importorskip("dask", reason="the extra dask has Dask")


@pytest.mark.usefixtures("synchronous")
@pytest.mark.parametrize(("senders", "receivers"), [(1, 1), (1, 5), (5, 1), (3, 40), (40, 3), (35, 37)])
def test_each_gets_what_it_is_given(senders, receivers):
    # The last receiver gets nothing; some receivers get nothing from some senders, and two pieces from others.
    given = [
        [(place, (sender, place, turn)) for place in range(receivers - 1) for turn in range((sender + place) % 3)]
        for sender in range(senders)
    ]
    packed = [dask.delayed(pack)(sender, pieces) for sender, pieces in enumerate(given)]
    own, shared = [dask.delayed(place * 10) for place in range(receivers)], dask.delayed("all")
    found = dask.compute(*exchange("pieces", packed, receivers, lambda *all_of_it: all_of_it, shared, own=own))
    for place, (receiver, pieces, mine, known) in enumerate(found):
        assert (receiver, mine, known) == (place, place * 10, "all")
        assert [sender for sender, _ in pieces] == sorted(sender for sender, _ in pieces)
        expected = [(sender, piece) for sender, all_of_it in enumerate(given) for at, piece in all_of_it if at == place]
        assert sorted(pieces) == sorted(expected)
