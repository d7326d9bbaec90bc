"""An exchange: every task gives a piece for each of several receivers, and Dask's own shuffle delivers the pieces.

With workers this is Dask's P2P shuffle, unless Dask is set to another one: pieces wait on the workers' disks, there is
no task for each pair of sender and receiver, and no worker holds all pieces.
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
# Sums by category are mostly zeros; this compression packs more than a gigabyte a second.
CODEC = "lz4"


def pack(sender: int, pieces: Iterable[tuple[int, Any]]) -> Any:
    """Pack the pieces of one sender for `exchange`.

    Parameters
    ----------
    sender : int
    pieces : iterable of (int, object)
        The number of a receiver and its piece, which is pickled.

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
    """Give the numbers of senders, rising, and their pieces, from what one receiver got."""
    cells = zip(packed[SENDER].tolist(), packed[N_BYTES].tolist(), pa.array(packed[PIECE]), strict=True)
    pieces = [(sender, pickle.loads(pa.decompress(cell.as_buffer(), size, CODEC))) for sender, size, cell in cells]
    return sorted(pieces, key=itemgetter(0))


def exchange(
    title: str, given: Sequence[Any], number: int, join: Callable[..., Any], *shared: Any, own: Sequence[Any] = ()
) -> list[Any]:
    """Give for each receiver a Delayed of the result that it computes from its pieces.

    Parameters
    ----------
    title : str
        The names of the tasks begin with it.
    given : list of Delayed
        The result of `pack` for each sender.
    number : int
        The number of receivers.
    join : callable
        ``join(receiver, pieces, *own, *shared)``; pieces are pairs of a sender and its piece, ordered by sender.
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
    """Choose Dask's shuffle for the scheduler that will compute the result.

    It is never "disk", whose files are on one machine: other machines would silently find no files.
    """
    from dask import config
    from dask.base import get_scheduler

    distributed = sys.modules.get("distributed")
    has_workers = distributed is not None and isinstance(getattr(get_scheduler(), "__self__", None), distributed.Client)
    return "p2p" if has_workers and config.get("dataframe.shuffle.method", None) != "tasks" else "tasks"


def join_pieces(join: Callable[..., Any], receiver: int, packed: Any, *others: Any) -> Any:
    """Unpack the pieces of a receiver, and call its function."""
    return join(receiver, unpack(packed), *others)


def receive(_: int, pieces: Sequence[tuple[int, Any]], *own: Any) -> tuple[Any, ...]:
    """Give the pieces that a partition received, and the data that it has kept itself."""
    return pieces, *own


def released(function: Callable[..., Any], *given: Any) -> Any:
    """Call a function, then free the memory that Arrow and the C library keep, since Dask counts it as used."""
    # A process that only receives encodings does not need the modules of files.
    from gpu_encode.scale.files import memory

    result = function(*given)
    memory.release()
    return result
