"""OrdinalEncoder: categories become whole numbers, in one of several orders."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_array

from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder
from gpu_encode.encoders.ordinal.inverse import inverses_of
from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters, read_scheme
from gpu_encode.formulas.ranks import Ranks, check_dtype
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.tables.categories.keys import categories_as_numpy
from gpu_encode.words.annotations import Categories, Columns, Device, NumberType, Table, TargetType
from gpu_encode.words.errors.parameters import bad_option, check_option
from gpu_encode.words.errors.tables import check_number_of_codes

COMPUTED = ("float64", "float32")
# Codes are floats until the output is assembled; floats hold all integers up to this one.
LARGEST = 1 << 53


@dataclass(eq=False, repr=False)
class OrdinalEncoder(Encoder):
    """Encode categories as the integers 0 to K - 1, by value, frequency, mean of the target, or at random.

    With ``order="target"``, `fit_transform` gives training codes by the scheme `cv`: a row looks at the rows that the
    scheme lets it see, and its code is the rank of its category, by mean, among the categories of these rows.  In every
    other order the target plays no part, and `fit_transform` gives the same as `transform`.

    Parameters
    ----------
    categories : "auto" or list, default="auto"
        "auto": the sorted values of the training rows.  A list: one list of values per encoded column, in the order of
        their codes.  Every listed value has a code, except with ``order="target"``.
    dtype : dtype, default="float64"
        A type of floats or integers that holds all codes exactly.
    handle_unknown : {"error", "use_encoded_value"}, default="error"
        The code of values that fit did not see, or an error.  A value that only rows of weight 0 have gets the code
        `unknown_value`; with "error" its code comes after all others, so that it changes no other code.
    unknown_value : int or nan, optional
        The code of unknown values with "use_encoded_value"; no category may have it.
    encoded_missing_value : int or nan, default=nan
        Code of missing values: None, NaN, pandas.NA, NaT and Arrow null, which count as one value and as no category.
        If no training row has a missing value, missing values are unknown values.
    min_frequency : int or float, optional
        Categories of less weight, or of a smaller share of all rows, are infrequent: together they are one category.
    max_categories : int, optional
        Largest number of codes, the code of the infrequent categories included.
    order : {"value", "frequency", "target", "random"}, default="value"
        The order of the codes.  "value": by value, or as listed in `categories`; infrequent categories are last.
        "frequency": from the most frequent category, 0, to the rarest.  "target": by the mean of the target.
        "random": a random order.  Equal categories are in the order of their values.
    n_draws : int, default=1
        Number of columns of codes for each encoded column, each in another random order: for forests that average over
        codings.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        For order="target", as in `TargetEncoder`: one column per target, and per class of a multiclass one.
    missing_target : {"error", "keep"}, default="error"
        For order="target": rows without a target, as in `TargetEncoder`.  A category that only such rows have gets the
        code of a category of weight 0.
    cv : int, scheme, splitter, iterable, str or array, default=5
        For order="target": who may look at whom in training, as in `TargetEncoder`.  Schemes in which each row has sums
        of its own are refused.  A category that no visible row has gets `unknown_value`, or the rank that the mean of
        all visible rows would have.
    random_state : int, default=0
        Seed of the folds of an integer `cv`, and of random orders, which also depend on the column's position and
        number of categories.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.

    Attributes
    ----------
    categories_ : list of ndarray of shape (n_categories,)
        Values of each encoded column, a missing value (NaN) last.
    infrequent_categories_ : list of ndarray or None
        Infrequent values of each encoded column; exists only if `min_frequency` or `max_categories` is set.
    encodings_ : list of float64 ndarray of shape (n_categories,)
        For each output, the code of each value in `categories_`.
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    Notes
    -----
    Parameters that are changed after fit change nothing before the next fit.

    See Also
    --------
    TargetEncoder : Columns, weights, pieces, states and devices mean the same there.
    sklearn.preprocessing.OrdinalEncoder : Its parameters mean the same here, but it takes None for a category.

    References
    ----------
    feature-engine's OrdinalEncoder(encoding_method="ordered") ranks by the mean of the target, training rows included.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import OrdinalEncoder
    >>> X = np.array([["oak"], ["elm"], ["yew"], ["oak"]], dtype=object)
    >>> OrdinalEncoder().fit_transform(X).ravel().tolist()
    [1.0, 0.0, 2.0, 1.0]
    >>> OrdinalEncoder(order="frequency", dtype="int32").fit_transform(X).ravel().tolist()
    [0, 1, 2, 0]
    >>> encoder = OrdinalEncoder(order="target", cv=2).fit(X, [2.5, 9.0, 1.0, 3.5])
    >>> encoder.transform([["yew"], ["oak"], ["elm"]]).ravel().tolist()
    [0.0, 1.0, 2.0]
    """

    categories: Categories = "auto"
    dtype: NumberType = "float64"
    handle_unknown: Literal["error", "use_encoded_value"] = "error"
    unknown_value: float | None = None
    encoded_missing_value: float = np.nan
    min_frequency: float | None = None
    max_categories: int | None = None
    _: KW_ONLY
    order: Literal["value", "frequency", "target", "random"] = "value"
    n_draws: int = 1
    target_type: TargetType | Sequence[TargetType] = "auto"
    missing_target: Literal["error", "keep"] = "error"
    cv: CrossFitting = 5
    random_state: int = 0
    columns: Columns = None
    device: Device = "auto"
    parameters_before: ClassVar[Mapping[str, Any]] = SchemeEncoder.parameters_before

    def _parameters(self) -> Parameters:
        self._check_codes()
        by_target, name = self.order == "target", check_dtype(self.dtype).name
        statistic = Ranks(
            self.order,
            self.n_draws,
            self.random_state if self.order == "random" else 0,
            None if self.unknown_value is None else float(self.unknown_value),
            float(self.encoded_missing_value),
            self.min_frequency,
            self.max_categories,
            isinstance(self.categories, list),
            name,
        )
        return Parameters.of(
            self,
            statistic,
            target_type=self.target_type if by_target else None,
            as_unseen="use_encoded_value",
            # `Ranks` joins infrequent categories by itself.
            min_frequency=None,
            max_categories=None,
            dtype=name if name in COMPUTED else "float64",
            **(read_scheme(self) if by_target else {}),
        )

    def _check_codes(self) -> None:
        """Raise ValueError or TypeError for codes of unknown and missing values that do not fit other parameters."""
        owner, value, dtype = type(self).__name__, self.unknown_value, check_dtype(self.dtype)
        check_option(owner, "handle_unknown", self.handle_unknown, ("error", "use_encoded_value"))
        if self.handle_unknown == "error" and value is not None:
            raise TypeError(
                f"unknown_value should only be set when handle_unknown is 'use_encoded_value', got {value}. Leave one "
                "of them out, or set both."
            )
        if self.handle_unknown != "error" and not is_code(value):
            raise TypeError(
                "unknown_value should be an integer or np.nan when handle_unknown is 'use_encoded_value', got "
                f"{value}. -1 is a usual choice."
            )
        if value is not None and dtype.kind != "f" and np.isnan(value):
            raise ValueError(
                f"When unknown_value is np.nan, the dtype parameter should be a float dtype. Got {self.dtype}. Choose "
                "an integer as unknown_value, or dtype='float64'."
            )
        if not is_code(self.encoded_missing_value):
            allowed = ("an integer", "np.nan")
            raise bad_option(owner, "encoded_missing_value", self.encoded_missing_value, allowed)
        for name in ("unknown_value", "encoded_missing_value"):
            code = getattr(self, name)
            if isinstance(code, Integral) and abs(int(code)) > LARGEST:
                raise bad_option(owner, name, code, ("the integers from -2**53 to 2**53", "np.nan"))

    @property
    def categories_(self) -> list[Array]:
        """Values of each encoded column, a missing value (NaN) last; tuples for joint keys."""
        return [
            with_nan(categories_as_numpy(key)) if key.has_missing else categories_as_numpy(key)
            for key in self._fitted().keys
        ]

    @property
    def infrequent_categories_(self) -> list[Array | None]:
        """Infrequent values of each encoded column, None where there are none."""
        inverses = inverses_of(self._fitted())
        if not inverses[0].statistic.pools:
            raise AttributeError("There is infrequent_categories_ only if min_frequency or max_categories is set.")
        return [
            categories_as_numpy(inverse.key)[: len(inverse.rare)][inverse.rare] if inverse.rare.any() else None
            for inverse in inverses
        ]

    def inverse_transform(self, X: Table) -> Array:
        """Give the values that codes stand for.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_codes)
            Only encoded columns, as `transform` gives them.  If one column gave several, the first of them is read.

        Returns
        -------
        ndarray of shape (n_rows, n_encoded)
            None for unknown values, "infrequent_sklearn" for infrequent ones.

        Raises
        ------
        ValueError
            If there are other columns, or codes that no category has.

        Examples
        --------
        >>> from gpu_encode import OrdinalEncoder
        >>> encoder = OrdinalEncoder().fit([["elm", 3], ["oak", 5]])
        >>> encoder.inverse_transform([[1, 0], [0, 1]]).tolist()
        [['oak', 3], ['elm', 5]]
        """
        model = self._fitted()
        inverses = inverses_of(model)
        check_number_of_codes(sum(inverse.n_columns for inverse in inverses), X)
        codes = check_array(X, dtype="numeric", ensure_all_finite="allow-nan")
        values = self.categories_
        kinds = [categories.dtype for categories in values]
        plain = len(set(kinds)) == 1 or all(kind.kind in "biuf" for kind in kinds)
        dtype = np.result_type(*kinds) if plain else np.dtype(object)
        if any(inverse.statistic.unknown is not None or inverse.rare.any() for inverse in inverses):
            dtype = np.dtype(object)
        originals, column = np.empty((len(codes), len(inverses)), dtype), 0
        for number, (inverse, words) in enumerate(zip(inverses, values, strict=True)):
            originals[:, number] = inverse.values_of(codes[:, column].astype(np.float64), words, dtype)
            column += inverse.n_columns
        return originals

    def _check_model(self, model: Model) -> None:
        """Raise ValueError for a code that would mean two things, or that the type cannot hold."""
        super()._check_model(model)
        inverses = inverses_of(model)
        dtype, unknown = np.dtype(inverses[0].statistic.dtype), inverses[0].statistic.unknown
        for inverse in inverses:
            if unknown is not None and 0 <= unknown < inverse.n_codes:
                raise ValueError(
                    f"The used value for unknown_value {int(unknown)} is one of the values already used for encoding "
                    f"the seen categories. Column {inverse.name!r} uses 0 to {inverse.n_codes - 1}: choose -1, or "
                    "another number outside."
                )
        missing = [inverse for inverse in inverses if inverse.key.has_missing]
        value, labels = inverses[0].statistic.missing, model.feature_names or range(model.n_features)
        if missing and dtype.kind != "f" and np.isnan(value):
            columns = [labels[inverse.key.entry.members[0]] for inverse in missing]
            raise ValueError(
                f"There are missing values in features {columns}. For OrdinalEncoder to encode missing values with "
                f"dtype: {self.dtype}, set encoded_missing_value to a non-nan value, or set dtype to a float"
            )
        if taken := [labels[inverse.key.entry.members[0]] for inverse in missing if 0 <= value < inverse.n_codes]:
            raise ValueError(
                f"encoded_missing_value ({int(value)}) is already used to encode a known category in features: "
                f"{list(taken)}. Choose -1, or another number outside of their codes."
            )
        for inverse in inverses:
            if len(inverse.beyond):
                raise ValueError(
                    f"Column {inverse.name!r} needs the code {int(inverse.beyond.min())}, which {dtype.name} cannot "
                    "hold. Choose a wider dtype."
                )

    def _finish(self, model: Model, arrays: list[Array]) -> list[Any]:
        """Give codes in the type that was asked for, if encodings are not computed in this type."""
        return super()._finish(model, in_number_type(arrays, self._output_type))

    @property
    def _output_type(self) -> np.dtype[Any]:
        statistic = self._model.rules[0].statistic
        assert isinstance(statistic, Ranks)
        return np.dtype(statistic.dtype)

    @property
    def _needs_target(self) -> bool:
        return self.order == "target"


def is_code(value: Any) -> bool:
    """Whether a value is an integer or NaN."""
    if isinstance(value, Integral):
        return not isinstance(value, bool)
    return isinstance(value, float | np.floating) and bool(np.isnan(value))


def with_nan(values: Array) -> Array:
    """Values with NaN in place of a None at the end, as scikit-learn writes it."""
    if values.dtype.kind == "O":
        values[-1] = np.nan
    return values


def in_number_type(arrays: list[Array], dtype: np.dtype[Any]) -> list[Array]:
    """Give codes in the type that was asked for; raise ValueError for NaN that this type cannot hold."""
    if dtype.name in COMPUTED:
        return arrays
    if dtype.kind != "f" and (blind := sum(int(np.isnan(array).sum()) for array in arrays)):
        raise ValueError(
            f"{blind} codes are NaN, because their rows see no other rows, and {dtype.name} has none. Choose "
            "dtype='float64', or handle_unknown='use_encoded_value'."
        )
    return [array.astype(dtype) for array in arrays]
