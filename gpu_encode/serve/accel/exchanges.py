"""Methods that were put into classes of another library, and what was there before."""

from typing import Any


class Exchanges:
    """What was exchanged, so that it can be put back."""

    def __init__(self) -> None:
        # What a class had of its own; a method that it had from a base is deleted.
        self._taken: list[tuple[type, str, Any]] = []

    def __len__(self) -> int:
        return len(self._taken)

    def put(self, owner: type, name: str, method: Any) -> None:
        """Put a method into a class, and remember what was there."""
        self._taken.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, method)

    def restore(self) -> None:
        """Put everything back."""
        while self._taken:
            owner, name, method = self._taken.pop()
            if method is None:
                delattr(owner, name)
            else:
                setattr(owner, name, method)
