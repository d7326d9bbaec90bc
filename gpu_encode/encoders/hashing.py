"""HashingEncoder: values are hashed to a few columns, and no value is kept."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder
from gpu_encode.fitting.columns import ColumnMap, locate_columns
from gpu_encode.fitting.fit import FitContext, sum_rows
from gpu_encode.fitting.model import Model, refuse_missing
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.fitting.tasks import make_room
from gpu_encode.formulas.hashes import Hashes
from gpu_encode.seam.ops import Ops, tiles
from gpu_encode.tables.categories.canonical_bytes import spell_categories
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.annotations import Columns, Device, FloatType
from gpu_encode.words.errors.parameters import check_option


@dataclass(eq=False, repr=False)
class HashingEncoder(Encoder):
    """Encode categories by a hash of each value: one of `n_components` columns counts it.

    The hash depends on the value alone, so nothing is learned from rows, nothing leaks, and there are no unknown
    values.  `fit` checks the rows and remembers their columns.  Different values may share a column.

    Parameters
    ----------
    n_components : int, default=8
        Number of columns of the output.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    alternate_sign : bool, default=False
        Half of the values count as -1, so that values that share a column cancel each other on average.
    per_column : bool, default=False
        True gives each encoded column `n_components` columns of its own.  False: all encoded columns are counted in the
        same `n_components` columns, and equal values of two columns are the same value.
    seed : int, default=0
        Seed of the hash, below 2**32.
    handle_missing : {"category", "zero", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are one and the same missing value.  "category": it is hashed as one
        more value.  "zero": it is not counted.  "error" refuses it.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.

    Attributes
    ----------
    device_ : {"cpu", "cuda"}
        Where the last fit ran.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X at fit; the attribute exists only if all of them are strings.

    Notes
    -----
    The hash h is MurmurHash3 (x86, 32 bits, signed) of the value's bytes; the column is ``abs(h) % n_components``.
    With ``alternate_sign``, h gives the sign.  The bytes of a text are its UTF-8, so text gets the encodings of
    scikit-learn's FeatureHasher.  The bytes of any other value begin with 0xFF and a letter.  A number is ``n`` and its
    decimal digits, "25e-1" for 2.5, so that 1, 1.0 and True are one value and "1" is another.

    See Also
    --------
    TargetEncoder : Columns, pieces, states and devices mean the same there.

    References
    ----------
    Weinberger, Dasgupta, Langford, Smola and Attenberg, "Feature hashing for large scale multitask learning", ICML
    2009.  category_encoders' HashingEncoder counts the columns of a row in the same components as well.

    Examples
    --------
    >>> from gpu_encode import HashingEncoder
    >>> X = [["oak", "red"], ["elm", "red"], ["oak", None]]
    >>> HashingEncoder(4).fit_transform(X).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 2.0], [0.0, 0.0, 1.0, 1.0]]
    >>> HashingEncoder(2, per_column=True).fit(X).get_feature_names_out(["tree", "colour"]).tolist()
    ['tree_0', 'tree_1', 'colour_0', 'colour_1']
    """

    n_components: int = 8
    _: KW_ONLY
    columns: Columns = None
    alternate_sign: bool = False
    per_column: bool = False
    seed: int = 0
    handle_missing: Literal["category", "zero", "error"] = "category"
    device: Device = "auto"
    dtype: FloatType = "float64"
    if TYPE_CHECKING:
        # This only declares a type: a field would be a parameter.
        _model: "HashedModel"
    _needs_target = False

    def _parameters(self) -> Parameters:
        check_option(type(self).__name__, "handle_missing", self.handle_missing, ("category", "zero", "error"))
        statistic = Hashes(self.n_components, self.alternate_sign, self.per_column, self.seed)
        return Parameters.of(self, statistic, as_unseen="zero", handle_unknown="zero")

    def _fit_encodings(self, context: FitContext) -> list[Array]:
        self._keep(context, sum_rows(context))
        keyed = [(column.key, column.codes) for column in context.categories]
        return self._model.count(keyed, context.rows.n_rows, context.rows.ops)

    @property
    def categories_(self) -> list[Array]:
        """Raise AttributeError: no categories are kept."""
        raise AttributeError("HashingEncoder keeps no categories.")

    @property
    def encodings_(self) -> list[Array]:
        """Raise AttributeError: no encodings are kept."""
        raise AttributeError("HashingEncoder keeps no encodings.")

    def _publish(self, model: Model) -> None:
        super()._publish(HashedModel.of(model))

    def _encoded_names(self, model: Model, names: Any) -> list[str]:
        statistic = model.rules[0].statistic
        assert isinstance(statistic, Hashes)
        if statistic.per_column:
            return super()._encoded_names(model, names)
        return [f"hash{suffix}" for suffix in statistic.suffixes()]


class HashedModel(Model):
    """A model without categories, whose encodings follow from values alone."""

    by_key = False

    def encode(self, frame: Frame | Pieces, ops: Ops, owner: str) -> tuple[list[Array], ColumnMap]:
        """Encode every row of a new frame: one array for each output column."""
        columns = locate_columns(frame, self.selection, self.feature_names, self.n_features, owner)
        keyed = []
        for known, rule in zip(self.keys, self.rules, strict=True):
            key, codes = CategoryIndex.fit(known.entry, columns, ops, rule.missing == "category")
            refuse_missing(codes, rule.missing, repr(known.entry.name), frame)
            keyed.append((key, codes))
        return self.count(keyed, frame.n_rows, ops), columns

    def count(self, keyed: Sequence[tuple[CategoryIndex, Array]], n_rows: int, ops: Ops) -> list[Array]:
        """Count the values of every row, given the categories and codes of these rows."""
        statistic = self.rules[0].statistic
        assert isinstance(statistic, Hashes)
        apart = statistic.n_components if statistic.per_column else 0
        width = statistic.n_components * (len(keyed) if apart else 1)
        matrix = make_room(ops, n_rows, width, self.dtype, self.targets)
        matrix[...] = 0.0
        for number, ((key, codes), rule) in enumerate(zip(keyed, self.rules, strict=True)):
            components, amounts = hashed(spell_categories(key), statistic)
            if rule.missing != "category":
                amounts[-1] = 0.0
            add(matrix, components + number * apart, amounts, codes, ops)
        return [matrix[:, i] for i in range(width)]


def hashed(words: Sequence[bytes], statistic: Hashes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Give the component of each word, and the amount that is added there."""
    hashes = np.array([murmurhash3_32(word, statistic.seed) for word in words], np.int64)
    signs = np.where(hashes < 0, -1.0, 1.0) if statistic.alternate_sign else np.ones(len(hashes))
    return np.abs(hashes) % statistic.n_components, signs


def add(matrix: Array, components: Array, amounts: Array, codes: Array, ops: Ops) -> None:
    """Add each row's amount to its component; code -1 takes the last ones.  Sums of whole numbers need no order."""
    n_rows, flat = len(matrix), matrix.T.reshape(-1)
    components, amounts = ops.to_device(components), ops.to_device(amounts.astype(matrix.dtype))
    for start, stop in tiles(n_rows, ops.TILE):
        tile = codes[start:stop]
        indices = components[tile] * n_rows + ops.xp.arange(start, stop)
        flat.put(indices, flat.take(indices) + amounts[tile])
