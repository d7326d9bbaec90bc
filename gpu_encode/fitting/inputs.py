"""What a call was given: one table or several as one frame, and the vectors in line with its rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode import devices, frames
from gpu_encode.errors.rows import RowError
from gpu_encode.frames import Frame, Pieces, PieceVectors


class Inputs:
    """What a call was given.

    Parameters
    ----------
    X : table, or list, iterator or another collection of tables
    y, sample_weight, groups
        One vector for all rows; or, beside several tables, a collection of one vector for each.
    """

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> None:
        tables = frames.tables_of(X)
        self.tables = [X] if tables is None else tables
        self.frame = frames.read(X) if tables is None else frames.read_pieces(tables)
        vectors = {"y": y, "sample_weight": sample_weight, "groups": groups}
        self._vectors = {role: frames.in_line(data, role, self.frame) for role, data in vectors.items()}

    @property
    def has_target(self) -> bool:
        """Whether y was given."""
        return self._vectors["y"] is not None

    def device(self, wanted: str) -> str:
        """Where to compute."""
        held = [self._vectors["y"], self._vectors["sample_weight"]]
        vectors = [part for each in held for part in (each.parts if isinstance(each, PieceVectors) else [each])]
        return devices.choose(wanted, *self.tables, *vectors)

    def weight(self) -> Array | None:
        """Weight of each row, not yet checked."""
        data = self._vectors["sample_weight"]
        if isinstance(data, PieceVectors):
            return data.vector()
        return None if data is None else frames.read_vector(data, "sample_weight", self.frame.n_rows)

    def groups(self) -> Frame | Pieces | None:
        """Group of each row, as a frame of one column."""
        data = self._vectors["groups"]
        if isinstance(data, PieceVectors):
            return data.grouping()
        return None if data is None else frames.read_grouping(data, "groups", self.frame.n_rows)

    def targets(self) -> list[tuple[str | None, Array]]:
        """Name, if there is one, and values of each target."""
        data = self._vectors["y"]
        return data.targets() if isinstance(data, PieceVectors) else frames.read_targets(data, self.frame.n_rows)

    def for_splitter(self) -> tuple[Any, Any]:
        """Give X and y as scikit-learn's splitters take them: of tables in pieces they learn the number of rows."""
        y = self._vectors["y"]
        X = np.empty((self.frame.n_rows, 0)) if isinstance(self.frame, Pieces) else self.tables[0]
        is_read = isinstance(y, PieceVectors) or devices.on_gpu(y)
        return X, frames.on_host(self.targets()) if is_read else devices.unwrapped(y)

    @contextmanager
    def naming_piece(self, role: str) -> Iterator[None]:
        """Say of a row that an error names which vector of a role has it, where there is one for each table."""
        try:
            yield
        except RowError as error:
            data = self._vectors[role]
            if isinstance(data, PieceVectors):
                raise error.in_pieces(role, data.lengths) from error
            raise
