"""Reading one chunk ahead and writing one behind, each in a thread, so that disk and processor work together."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

Item = TypeVar("Item")


class ReadAhead(Generic[Item]):
    """Takes items from an iterator in a thread, at most one before it is asked for.

    Parameters
    ----------
    items : callable
        Gives the iterator; called with a function that tells whether to stop early.

    Examples
    --------
    >>> with ReadAhead(lambda stopped: iter("ab")) as ahead:
    ...     list(ahead)
    ['a', 'b']
    """

    def __init__(self, items: Callable[[Callable[[], bool]], Iterable[Item]]) -> None:
        self.seconds = 0.0
        self.waited = 0.0
        self._items = items
        self._state = threading.Condition()
        # What the thread has ready: an item, an error, or the end.
        self._ready: list[tuple[str, Any]] = []
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="gpu-encode reading", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._state:
            self._stopped = True
            self._ready.clear()
            self._state.notify_all()
        self._thread.join()

    def __iter__(self) -> Iterator[Item]:
        while True:
            begun = time.perf_counter()
            with self._state:
                while not self._ready:
                    self._state.wait()
                what, item = self._ready.pop()
                self._state.notify_all()
            self.waited += time.perf_counter() - begun
            if what == "error":
                raise item
            if what == "end":
                return
            yield item
            # The chunk at work is let go before the next one is asked for.
            del item

    def _run(self) -> None:
        try:
            begun = time.perf_counter()
            for item in self._items(lambda: self._stopped):
                self.seconds += time.perf_counter() - begun
                self._offer("item", item)
                del item
                if self._stopped:
                    return
                begun = time.perf_counter()
        except BaseException as error:
            self._offer("error", error)
        else:
            self._offer("end", None)

    def _offer(self, what: str, item: Any) -> None:
        """Hand over, and wait until it is taken."""
        with self._state:
            if not self._stopped:
                self._ready.append((what, item))
                self._state.notify_all()
            del item
            while self._ready and not self._stopped:
                self._state.wait()


class WriteBehind(Generic[Item]):
    """Hands items to a function in a thread, one at a time.

    Parameters
    ----------
    write : callable
        Called with each item, in order.

    Examples
    --------
    >>> written = []
    >>> with WriteBehind(written.append) as behind:
    ...     behind.put("a")
    ...     behind.put("b")
    >>> written
    ['a', 'b']
    """

    def __init__(self, write: Callable[[Item], None]) -> None:
        self.seconds = 0.0
        self.waited = 0.0
        self._write = write
        self._state = threading.Condition()
        self._waiting: list[Item] = []
        self._busy = False
        self._ended = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="gpu-encode writing", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        begun = time.perf_counter()
        with self._state:
            self._ended = True
            if error is not None:
                self._waiting.clear()
            self._state.notify_all()
        self._thread.join()
        self.waited += time.perf_counter() - begun
        if self._error is not None and error is None:
            raise self._error

    def put(self, item: Item) -> None:
        """Hand over the next item, once those before it are written; raises what went wrong with one of them."""
        begun = time.perf_counter()
        with self._state:
            while self._busy or self._waiting:
                self._state.wait()
            if self._error is not None:
                raise self._error
            self._waiting.append(item)
            self._state.notify_all()
        self.waited += time.perf_counter() - begun

    def _run(self) -> None:
        while True:
            with self._state:
                while not self._waiting and not self._ended:
                    self._state.wait()
                if not self._waiting:
                    return
                item = self._waiting.pop()
                self._busy = True
            begun = time.perf_counter()
            try:
                self._write(item)
            except BaseException as error:
                self._error = error
            del item
            self.seconds += time.perf_counter() - begun
            with self._state:
                self._busy = False
                self._ended = self._ended or self._error is not None
                self._state.notify_all()
