"""The base of encoders with `cv`; its `draw` gives the training encodings of one random order without a fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.base import CategoryEncoder
from gpu_encode.fitting.fit import encode_rows, prepare_again
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model
from gpu_encode.schemes import Ordered
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Table, Vector


@dataclass(eq=False, repr=False, kw_only=True)
class SchemeEncoder(CategoryEncoder):
    """An encoder with `cv`, the scheme by which training rows are encoded."""

    missing_target: Literal["error", "keep"] = "error"
    # The value for encoders that were saved before this parameter existed.
    parameters_before: ClassVar[Mapping[str, Any]] = MappingProxyType({"missing_target": "error"})

    def draw(self, X: Table, y: Table | None = None, t: int = 0, *, sample_weight: Vector | None = None) -> Any:
        """Give the training encodings of one random order, by its number: boosting may take another order at each step.

        Parameters
        ----------
        X, y, sample_weight
            The rows that the encoder was fitted to, in memory: one table or several, of any kind.  If the encoder has
            `columns`, the columns of frames may be in another order.
        t : int, default=0
            Number of the order, from 0 on; it may be larger than `n_permutations`.

        Returns
        -------
        table of shape (n_rows, n_outputs), or list of tables
            A table as `fit_transform` gives it with ``Ordered(n_permutations=1)``.  For `t` below T, each encoding has
            the bits of column t of ``Ordered(n_permutations=T, average=False)``.

        Raises
        ------
        ValueError
            If `cv` is not `Ordered` with random orders and an integer as `random_state`, if `t` is negative, or if the
            exact sums of the rows are not those of the rows that `fit` was given.

        Notes
        -----
        The encoder is not changed.  The rank of a row in an order is a function of the seed, `t` and the row number;
        the categories are those of `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from gpu_encode import Ordered, TargetEncoder
        >>> X, y = np.array([["a"], ["a"], ["b"], ["a"]]), np.array([1.0, 2.0, 4.0, 6.0])
        >>> encoder = TargetEncoder(smooth=1.0, prior=0.0, target_type="continuous", cv=Ordered()).fit(X, y)
        >>> [encoder.draw(X, y, t).ravel().tolist() for t in range(2)]
        [[2.6666666666666665, 3.0, 0.0, 0.0], [0.0, 2.3333333333333335, 0.0, 0.5]]
        """
        check_is_fitted(self, "_model")
        if frames.is_partitioned(X):
            raise TypeError("draw takes rows in memory, not tables of Dask. Call compute() on them first.")
        with devices.explain_memory():
            return self._draw(Inputs(X, y, sample_weight), t)

    def _draw(self, inputs: Inputs, number: Any) -> Any:
        parameters = self._parameters()
        if parameters.scheme_by_key or not isinstance(parameters.scheme, Ordered):
            raise ValueError(
                f"draw needs one random order for all columns, which cv={self.cv!r} does not have. Fit with "
                "cv=Ordered(), or call fit_transform."
            )
        plan = parameters.scheme.draw(number, inputs.frame.n_rows)
        self._check_names(inputs, self._model.selection, reset=False)
        context = prepare_again(parameters, inputs, self._model)
        arrays, sums = encode_rows(context, [plan] * len(context.tasks))
        check_same_rows(self._model, sums, context.rows.ops)
        model = replace(self._model, permutations=1)
        return self._assemble(context.rows.frame, arrays, context.columns, model)


def check_same_rows(model: Model, sums: Sequence[Sequence[CategorySums]], ops: Ops) -> None:
    """Raise ValueError unless the sums are equal to the sums of the rows to which a model was fitted."""
    for known, again in zip(model.statistics, sums, strict=True):
        for one, other in zip(known, again, strict=True):
            at_fit, here = one.to_canonical(), other.on_host(ops).to_canonical()
            if at_fit.spec != here.spec or not np.array_equal(at_fit.accumulators, here.accumulators):
                raise ValueError(
                    "draw encodes the rows that the encoder was fitted to, but the sums of these rows are others. Pass "
                    "X, y and sample_weight as fit was given them, or fit the encoder again."
                )
