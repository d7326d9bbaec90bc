"""Methods that were replaced in classes of another library, and the original ones."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

Put = Callable[[type, str, Any], None]


class Exchanges:
    """The replaced methods, which are put back when no call is running that began with them.

    A served call hands its own numbers from one replaced method to the next one.  So an original method must not take
    the place of a replaced one before the call has ended.
    """

    def __init__(self) -> None:
        # The methods that a class itself had; if it only inherited a method, the replacement is deleted.
        self._taken: list[tuple[type, str, Any]] = []
        self._wanted, self._running = False, 0
        # One thread may take it twice: a signal may call `uninstall` anywhere.
        self._lock = RLock()
        if hasattr(os, "register_at_fork"):
            release = self._lock.release
            os.register_at_fork(before=self._lock.acquire, after_in_parent=release, after_in_child=release)

    def exchange(self, put_all: Callable[[Put], None]) -> None:
        """Replace methods, unless they are replaced already."""
        with self._lock:
            self._wanted = True
            if not self._taken:
                put_all(self._put)

    def _put(self, owner: type, name: str, method: Any) -> None:
        """Replace a method of a class, and remember the original."""
        self._taken.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, method)

    @contextmanager
    def call(self) -> Iterator[bool]:
        """Keep the replaced methods during a call; False if they are not wanted, so that it must not be served."""
        with self._lock:
            wanted = self._wanted
            self._running += wanted
        try:
            yield wanted
        finally:
            with self._lock:
                self._running -= wanted
                self._restore()

    def restore(self) -> None:
        """Serve no new call, and put everything back: now, or when the last running call ends."""
        with self._lock:
            self._wanted = False
            self._restore()

    def _restore(self) -> None:
        while self._taken and not (self._wanted or self._running):
            owner, name, method = self._taken.pop()
            if method is None:
                delattr(owner, name)
            else:
                setattr(owner, name, method)
