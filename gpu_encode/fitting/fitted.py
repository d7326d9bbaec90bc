"""What every fitted encoder offers: its categories and codes, the names of its columns, and a file of it."""

from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from cpu_fallback.types import Array
from gpu_encode.categories.keys import people_readable
from gpu_encode.errors.learned import not_fitted
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.names import encoded_names


class Fitted(BaseEstimator):
    """What every fitted encoder offers."""

    _model: Model

    @property
    def categories_(self) -> list[Array]:
        """Values of each encoded column, a missing value last; tuples for joint keys."""
        return [people_readable(key) for key in self._fitted().keys]

    @property
    def encodings_(self) -> list[Array]:
        """Code of each category, per column and class (and target)."""
        model = self._fitted()
        return [
            np.append(
                codes.values[: key.n_categories, view, output],
                codes.values[-1:, view, output] if key.has_missing else [],
            )
            for key, per_target in zip(model.keys, model.tables, strict=True)
            for codes in per_target
            for output in range(codes.values.shape[2])
            for view in range(codes.values.shape[1])
        ]

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the output columns.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns of X, where it had none.

        Returns
        -------
        ndarray of str objects

        Examples
        --------
        >>> from gpu_encode import TargetEncoder
        >>> encoder = TargetEncoder(indicators=True).fit([["a"], ["b"]], [0, 1])
        >>> encoder.get_feature_names_out(["shop"]).tolist()
        ['shop', 'shop_unseen']
        """
        check_is_fitted(self, "_model")
        names = _check_feature_names_in(self, input_features)
        selection = self._model.selection
        return np.array([*self._encoded_names(names), *(names[i] for i in selection.passed)], dtype=object)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the fitted encoder to one file, whole or not at all.

        Parameters
        ----------
        path : path
            The file; `gpu_encode.load` reads it back on any machine.

        Raises
        ------
        OSError
            If it cannot be written; an older file of that name is then as it was.

        Examples
        --------
        >>> import tempfile
        >>> from gpu_encode import TargetEncoder, load
        >>> encoder = TargetEncoder(smooth=0.0).fit([["a"], ["b"]], [0, 1])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     encoder.save(f"{folder}/encoder")
        ...     load(f"{folder}/encoder").transform([["b"]]).tolist()
        [[1.0]]
        """
        from gpu_encode import storage

        storage.save(self, path)

    def _fitted(self) -> Model:
        if not hasattr(self, "_model"):
            raise not_fitted(type(self).__name__)
        return self._model

    def _names_of(self, model: Model) -> list[str]:
        names = model.feature_names or [f"x{i}" for i in range(model.n_features)]
        return [*encoded_names(model, names), *(names[i] for i in model.selection.passed)]

    def _encoded_names(self, names: Any) -> list[str]:
        return encoded_names(self._model, names)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")
