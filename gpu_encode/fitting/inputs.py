"""What a call was given: one table or several as one frame, and the vectors in line with its rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpu_fallback.types import Array
from gpu_encode import devices, frames, ops
from gpu_encode.errors.rows import RowError
from gpu_encode.errors.targets import no_target
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.frames import Frame, Pieces, PieceVectors
from gpu_encode.ops import Ops
from gpu_encode.sums import targets


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
        data = [*self.tables]
        for vector in (self._vectors["y"], self._vectors["sample_weight"]):
            data += vector.parts if isinstance(vector, PieceVectors) else [vector]
        return devices.choose(wanted, *data)

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
        """Give X and y as scikit-learn's splitters take them: of several tables they learn the number of rows alone."""
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


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Training rows: the table, the vectors that every target shares, and the backend that computes.

    Parameters
    ----------
    inputs : Inputs
    ops : Ops
    weight : array (rows,), optional
        Checked, where `ops` computes.
    groups : Frame or Pieces, optional
        A frame of one column.
    """

    inputs: Inputs
    ops: Ops
    weight: Array | None
    groups: Frame | Pieces | None

    @property
    def frame(self) -> Frame | Pieces:
        """The table."""
        return self.inputs.frame

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.inputs.frame.n_rows

    def targets(self) -> list[tuple[str | None, Any]]:
        """Name, if there is one, and values of each target, where the backend reads them."""
        return [(name, move_to_reader(values, self.ops)) for name, values in self.inputs.targets()]


def read_rows(parameters: Parameters, inputs: Inputs, all_rows: bool = True) -> TrainingRows:
    """Choose the backend, and read the weights and groups.

    Parameters
    ----------
    parameters : Parameters
    inputs : Inputs
    all_rows : bool, default=True
        Whether these are all rows, so that some weight has to be above zero.

    Raises
    ------
    ValueError
        If there are no rows, no target where one is needed, or weights that are none.
    """
    frame = inputs.frame
    if parameters.target_type is not None and not inputs.has_target:
        raise no_target(parameters.owner)
    if not frame.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={frame.shape}) while a minimum of 1 is required by "
            f"{parameters.owner}."
        )
    backend = ops.resolve(frame.n_rows, inputs.device(parameters.device))
    with inputs.naming_piece("sample_weight"):
        weight = inputs.weight()
        if weight is not None:
            weight = targets.check_weight(backend, move_to_reader(weight, backend), all_rows)
            weight = backend.to_device(weight)
    return TrainingRows(inputs, backend, weight, inputs.groups())


def move_to_reader(values: Any, backend: Ops) -> Any:
    """Give values of a GPU to a backend of the host; values on the host stay there, where they are checked first."""
    if isinstance(values, np.ndarray) or ops.device_of(backend) == "cuda":
        return values
    return values.on_host() if isinstance(values, frames.NumberedLabels) else frames.to_host(values)
