"""Each task gives a piece to each of some receivers: pieces find their receivers by Dask's own shuffle.

With workers that is its P2P shuffle, unless Dask is set to another: pieces wait on the workers' disks, there is no task
for each pair, and no worker holds them all.
"""

import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from gpu_encode.scale.dask.trees import make_delayed

RECEIVER, SENDER, PIECE, N_BYTES = "receiver", "sender", "piece", "n_bytes"
# Sums by category are mostly zeros; it packs more than a gigabyte a second.
CODEC = "lz4"


def pack(sender: int, pieces: Iterable[tuple[int, Any]]) -> Any:
    """Give what one sender has for others, as `exchange` takes it.

    Parameters
    ----------
    sender : int
    pieces : iterable of (int, object)
        Numbers of receivers, and what each is to get, which has to be pickled.

    Returns
    -------
    pandas.DataFrame
        A row for each piece.
    """
    import pandas as pd

    receivers, contents, sizes = [], [], []
    for receiver, piece in pieces:
        content = pickle.dumps(piece, protocol=pickle.HIGHEST_PROTOCOL)
        receivers.append(receiver)
        contents.append(pa.compress(content, CODEC, asbytes=True))
        sizes.append(len(content))
    column = pd.arrays.ArrowExtensionArray(pa.array(contents, pa.large_binary()))
    numbers = {RECEIVER: receivers, SENDER: [sender] * len(receivers), N_BYTES: sizes}
    return pd.DataFrame({name: np.array(cells, np.int64) for name, cells in numbers.items()} | {PIECE: column})


def unpack(packed: Any) -> list[tuple[int, Any]]:
    """Give the numbers of senders, rising, and the pieces in what came to one receiver."""
    cells = zip(packed[SENDER].tolist(), packed[N_BYTES].tolist(), pa.array(packed[PIECE]), strict=True)
    pieces = [(sender, pickle.loads(pa.decompress(cell.as_buffer(), size, CODEC))) for sender, size, cell in cells]
    return sorted(pieces, key=itemgetter(0))


def exchange(
    title: str, given: Sequence[Any], number: int, join: Callable[..., Any], *shared: Any, own: Sequence[Any] = ()
) -> list[Any]:
    """Give a Delayed for each of so many receivers of what it makes of all that it gets.

    Parameters
    ----------
    title : str
        What the tasks' names begin with.
    given : list of Delayed
        Of each, what `pack` gives.
    number : int
        Of receivers.
    join : callable
        ``join(receiver, pieces, *own, *shared)``, where pieces are pairs of a sender and what it gave, by sender.
    *shared : Delayed
    own : list of Delayed, optional
        One for each receiver.

    Examples
    --------
    >>> from dask import compute, delayed
    >>> from gpu_encode.scale.dask.exchange import exchange, pack
    >>> rows = [delayed(pack)(sender, enumerate(word)) for sender, word in enumerate(["ab", "cd"])]
    >>> compute(*exchange("letters", rows, 2, lambda receiver, pieces: (receiver, pieces)))
    ((0, [(0, 'a'), (1, 'c')]), (1, [(0, 'b'), (1, 'd')]))
    """
    from dask.dataframe import from_delayed

    frame = from_delayed(given, meta=pack(0, ()), verify_meta=False)
    divisions = list(range(number + 1))
    met = frame.set_index(RECEIVER, divisions=divisions, shuffle_method=choose_shuffle()).to_delayed()

    def graph(name: str) -> dict[str, Any]:
        mine = [[one.key] for one in own] or [[]] * number
        others = [promise.key for promise in shared]
        return {
            f"{name}-{receiver}": (join_pieces, join, receiver, packed.key, *mine[receiver], *others)
            for receiver, packed in enumerate(met)
        }

    return make_delayed(title, graph, range(number), [*met, *own, *shared])


def choose_shuffle() -> str:
    """Give the name of the shuffle of Dask that serves whoever is to compute what is asked for.

    Never "disk": its files are those of one machine, and another machine would find none, without a word.
    """
    from dask import config
    from dask.base import get_scheduler

    distributed = sys.modules.get("distributed")
    has_workers = distributed is not None and isinstance(getattr(get_scheduler(), "__self__", None), distributed.Client)
    return "p2p" if has_workers and config.get("dataframe.shuffle.method", None) != "tasks" else "tasks"


def join_pieces(join: Callable[..., Any], receiver: int, packed: Any, *others: Any) -> Any:
    """Give what a receiver makes of what came to it."""
    return join(receiver, unpack(packed), *others)


def receive(_: int, pieces: Sequence[tuple[int, Any]], *own: Any) -> tuple[Any, ...]:
    """Give what came to a partition, and what it has kept."""
    return pieces, *own


def released(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function, and give memory back: what Arrow and the C library keep, Dask counts as in use."""
    # Encodings that come to one process do without the modules of files.
    from gpu_encode.scale.files import memory

    result = function(*given)
    memory.release()
    return result
