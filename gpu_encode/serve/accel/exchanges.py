"""Methods that were replaced in classes of another library, and the original ones."""

from typing import Any


class Exchanges:
    """The replaced methods, so that they can be put back."""

    def __init__(self) -> None:
        # The methods that a class itself had; if it only inherited a method, the replacement is deleted.
        self._taken: list[tuple[type, str, Any]] = []

    def __len__(self) -> int:
        return len(self._taken)

    def put(self, owner: type, name: str, method: Any) -> None:
        """Replace a method of a class, and remember the original."""
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
