"""NumberFiller: missing numbers are replaced by statistics of the rows that a row may see."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.statistic import StatisticEncoder
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.tables.frames.filling import fill_missing, holding_words, read_named, with_constant
from gpu_encode.words.annotations import Table, Vector
from gpu_encode.words.errors.parameters import KnownKeywords, check_option

OWNER = "NumberFiller"
# The column that puts all rows into one group.
EVERYTHING = "gpu_encode_everything"


@dataclass(eq=False, repr=False)
class NumberFiller(KnownKeywords, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Replace missing numbers by the mean of their group, without a look at the row's own number.

    A missing number becomes the statistic of the rows of its group that have one, under a scheme: a training row sees
    the rows of other folds, as a new row sees rows of training.  ``groupby(...).transform("mean")`` of all rows at once
    gives training rows numbers that no new row can have.

    Parameters
    ----------
    columns : list of str, optional
        Columns of numbers to fill.  None: all columns of numbers but `by`.
    by : str, list of str, optional
        The column that names the group; several are a joint key.  None: all rows are one group.
    statistic : {"mean", "median"}, default="mean"
        What a missing number becomes.  If no visible row of the group has a number, that of all visible rows is taken.
    cv : int, scheme, splitter, iterable, str or array, default=5
        Who may look at whom in training, as in `TargetEncoder`.

    Attributes
    ----------
    columns_ : list of str
        The columns that are filled.
    encoder_ : StatisticEncoder
        The fitted encoder of the groups.
    n_features_in_ : int
        Number of columns of X.

    See Also
    --------
    StatisticEncoder : Groups become columns of statistics, of any kind, beside the numbers.
    sklearn.impute.SimpleImputer : The mean of all rows, each row's own included.

    Notes
    -----
    None, NaN and the missing values of every library are missing.  A column of whole numbers becomes one of float64.
    Neither the order of rows nor the library or device of X changes a bit.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpu_encode import KFold, NumberFiller
    >>> people = pd.DataFrame({"town": list("aaaabb"), "income": [10.0, None, 20.0, 30.0, 50.0, None]})
    >>> filler = NumberFiller(["income"], by="town", cv=KFold(2, order="interleaved"))
    >>> filler.fit_transform(people)["income"].tolist()
    [10.0, 15.0, 20.0, 30.0, 50.0, 50.0]
    >>> filler.transform(pd.DataFrame({"town": ["a", "c"], "income": [None, None]}))["income"].tolist()
    [20.0, 27.5]
    """

    columns: Sequence[str] | None = None
    _: KW_ONLY
    by: str | Sequence[str] | None = None
    statistic: Literal["mean", "median"] = "mean"
    cv: CrossFitting = 5

    def fit(self, X: Table, y: Table | None = None, *, groups: Vector | None = None) -> Self:  # noqa: ARG002
        """Learn what missing numbers of new rows become.

        Parameters
        ----------
        X : frame of shape (n_rows, n_columns)
            Of pandas, polars, Arrow, cuDF, or another library that narwhals reads.
        y : ignored
        groups : array of shape (n_rows,), optional
            For schemes of groups.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            If X is no frame, if a column is missing, if it holds no numbers, or if it is filled and names groups, too.
        """
        self._learn(read_named(X, OWNER), groups)
        return self

    def fit_transform(self, X: Table, y: Table | None = None, *, groups: Vector | None = None) -> Any:  # noqa: ARG002
        """Fill training rows, each missing number from rows that the row may see.

        Parameters
        ----------
        X, y, groups
            As in `fit`.

        Returns
        -------
        frame of shape (n_rows, n_columns)
            A frame as X, with its columns in their order.

        Raises
        ------
        TypeError, ValueError
            As in `fit`.
        """
        frame = read_named(X, OWNER)
        encoded = self._learn(frame, groups)
        return fill_missing(frame, self.columns_, encoded)

    def transform(self, X: Table) -> Any:
        """Fill new rows from all training rows.

        Parameters
        ----------
        X : frame of shape (n_rows, n_columns)
            Rows with the columns of fit.

        Returns
        -------
        frame of shape (n_rows, n_columns)
            A frame as X, with its columns in their order.

        Raises
        ------
        TypeError, ValueError
            If X is no frame, if a column is missing, or if it holds no numbers.
        """
        check_is_fitted(self, "encoder_")
        frame = read_named(X, OWNER)
        return fill_missing(frame, self.columns_, self.encoder_.transform(self._with_groups(frame)))

    def _learn(self, frame: Any, groups: Any) -> Any:
        """Fit the encoder; give the training encodings of the groups."""
        check_option(OWNER, "statistic", self.statistic, ("mean", "median"))
        by = self._read_groups(frame)
        self.columns_ = self._read_columns(frame, by)
        key = by[0] if len(by) == 1 else tuple(by)
        encoder = StatisticEncoder([self.statistic], columns=[key], values=self.columns_, cv=self.cv)
        encoded = encoder.fit_transform(self._with_groups(frame), groups=groups)
        self.encoder_, self.n_features_in_ = encoder, len(frame.columns)
        return encoded

    def _read_groups(self, frame: Any) -> list[str]:
        """Give the columns that name the group."""
        if self.by is None:
            return [EVERYTHING]
        by = [self.by] if isinstance(self.by, str) else list(self.by) if isinstance(self.by, Sequence) else []
        if not by or not all(isinstance(name, str) for name in by):
            raise TypeError(
                "The 'by' parameter of NumberFiller must be the name of a column, a list of names, or None. Got "
                f"{self.by!r} instead."
            )
        if absent := [name for name in by if name not in frame.columns]:
            raise ValueError(
                f"NumberFiller groups rows by {absent}, and X has no such columns. It has {frame.columns}."
            )
        return by

    def _read_columns(self, frame: Any, by: list[str]) -> list[str]:
        """Give the columns to fill."""
        if self.columns is None:
            numbers = [name for name, kind in frame.schema.items() if kind.is_numeric() and name not in by]
            if not numbers:
                raise ValueError(f"NumberFiller fills columns of numbers, and X has none. It has {frame.columns}.")
            return numbers
        if isinstance(self.columns, str):
            raise TypeError(f"columns of NumberFiller is a list of names. Write columns=[{self.columns!r}].")
        named = list(self.columns)
        if not named or len(set(named)) < len(named):
            raise ValueError(
                f"The 'columns' parameter of NumberFiller names at least one column, each once. Got {named} instead."
            )
        if both := [name for name in named if name in by]:
            raise ValueError(f"NumberFiller fills columns, and groups rows by others: {both} stands in columns and by.")
        return named

    def _with_groups(self, frame: Any) -> Any:
        """Give the frame as the user gave it; without groups with a column that is the same for all rows."""
        if absent := [name for name in self.columns_ if name not in frame.columns]:
            raise ValueError(f"NumberFiller fills {absent}, and X has no such columns. It has {frame.columns}.")
        if words := holding_words(frame, self.columns_):
            raise ValueError(f"NumberFiller fills numbers. Columns {words} hold text or times: leave them out.")
        return frame.to_native() if self.by is not None else with_constant(frame, EVERYTHING)
