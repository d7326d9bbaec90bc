"""The seam: the operations of a backend, and the choice of the backend for a call.

A backend is a module: `cpu_fallback` (NumPy, the definition), `cpu_fallback.compiled` (numba, threaded) and
`gpu_encode.cuda` (a GPU) each *are* an `Ops`.  `cpu_fallback.types` has the types of arguments and results.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np

from cpu_fallback.exact import MomentArrays, Ratio
from cpu_fallback.fused_rules import FoldedRows, FusedRule, PopulationMoments, RowEncodings, Visibility, Written
from cpu_fallback.memory import Order
from cpu_fallback.row_numbers import FoldPattern, Permutation, TimeOrder
from cpu_fallback.row_numbers import Order as RowOrders
from cpu_fallback.types import (
    MISSING,
    Array,
    Carry,
    Codes,
    FoldedResponses,
    Folds,
    KeyColumns,
    KeyCounts,
    KeyEncodings,
    KeyTables,
    Layout,
    Rows,
    SumsByNumber,
    SumShape,
)
from gpu_encode.seam import compilation, devices
from gpu_encode.seam.loading import LOADING
from gpu_encode.words.errors.parameters import check_option

COMPILED = "cpu_fallback.compiled"
STRINGS = f"{COMPILED}.strings"

# The limits in `compiled_serves`: at each number of rows, two ways to serve a call take the same time.
# benchmarks/backends.py measures them.
# | a call of the compiled backend, once loaded; the same call of NumPy       | LOADED_ROWS  |
# | loading numba and its kernels (0.35 s); NumPy's call on that many rows    | LOADING_ROWS |
# | loading the kernels of text (0.05 s); Arrow's call on that many rows      | LOADING_ROWS |
# | compiling the kernels of a call (10 s); NumPy's call on that many rows    | WAITING_ROWS |
LOADED_ROWS = 100
LOADING_ROWS = {COMPILED: 300_000, STRINGS: 100_000}
WAITING_ROWS = 20_000_000
# A process loads the compiled backend when its small calls together have as many rows as a call that would load it;
# each call runs `compiled_serves` about three times.
TIMES_ASKED = 3

_rows_asked_for: dict[str, int] = {COMPILED: 0, STRINGS: 0}


class Ops(Protocol):
    """The operations of every backend.  Arguments are positional; only `carry` and `out` are written to.

    Arrays are of the library `xp` and lie on the backend's device; `factorize`, `lookup`, `combine` and `to_device`
    take host arrays as well.  `TILE` is the number of rows whose intermediate results a backend should hold at a time.
    """

    xp: Any
    TILE: int
    fused: "FusedOps | None"

    def to_device(self, array: Array, /) -> Array:
        """Give an array on the backend's device; an array that is already there is not copied."""

    def to_host(self, array: Array, /) -> Array:
        """Give an array in the host's memory, as a NumPy array."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any, order: Order = "C", /) -> Array:
        """Allocate an array; a MemoryError says how many bytes were needed and what to do."""

    def zeros(self, shape: int | tuple[int, ...], dtype: Any, /) -> Array:
        """Allocate an array of zeros."""

    def cast(self, values: Array, dtype: Any, /) -> Array:
        """Give numbers in another type, each rounded once; an array of that type is given back itself."""

    def factorize(self, values: Array, /) -> tuple[Array, Array]:
        """Give the codes (int32) of numbers without null, and their sorted distinct values; -0.0 is 0.0."""

    def lookup(self, values: Array, categories: Array, /) -> Array:
        """Give the code of each value in sorted distinct `categories` of the same dtype; -2 for an absent value."""

    def number_in_order(self, values: Array, /) -> tuple[Array, Array]:
        """Give the code (int32) of each whole number, in the order of first occurrence, and the first row of each.

        The numbers lie on the host.
        """

    def combine(self, left: Array, right: Array, n_right: int, /) -> Array:
        """Give the joint int64 key of two columns of codes of at least 0, exact while n_left * n_right < 2**63."""

    def fold_numbers(self, pattern: FoldPattern, start: int, stop: int, /) -> Array:
        """Give the fold number (int32) of each row in [start, stop)."""

    def ranks_of(self, permutation: Permutation, start: int, stop: int, /) -> Array:
        """Give the rank in the order of each row in [start, stop)."""

    def rows_at(self, permutation: Permutation, start: int, stop: int, /) -> Array:
        """Give the row at each rank in [start, stop) of the order."""

    def extents(self, target: Array | None, weight: Array | None, powers: tuple[int, ...], /) -> list[tuple[int, int]]:
        """Give for each power the binary positions [low, high) of weight * target**power; (0, 0) if all are zero."""

    def accumulate(self, rows: Rows, shape: SumShape, folds: Folds = None, sums: Array | None = None, /) -> Array:
        """Give exact counts and sums: (n_categories + 2, n_folds, n_classes, layout.width) int64 digits, in one pass.

        Rows are added to `sums` in their own memory, if they are given.
        The digits of a window together are the sum; before carries, single digits may differ between backends.
        """

    def accumulate_numbers(self, rows: Rows, n_classes: int, layout: Layout, /) -> SumsByNumber:
        """Factorize numbers and sum their rows in one pass, for one fold; `rows.codes` are the numbers themselves."""

    def gather(self, table: Array, codes: Array, folds: Folds, out: Array, /) -> None:
        """Write table[code, fold] (categories + 2, folds, outputs) of each row to `out` (rows, outputs)."""

    def gather_numbers(self, table: Array, values: Array, categories: Array, out: Array, /) -> None:
        """Write table[code] (categories + 2, 1, outputs) of each number to `out` (rows, outputs).

        A code is the index in sorted distinct `categories` of the same dtype, as `lookup` gives it; a value that is not
        among them takes the row before the last.
        """

    def visible(self, accumulators: Array, visibility: Array | None, /) -> Array:
        """Sum accumulators (categories + 2, folds, ...) over the folds that each view sees.

        `visibility[view, fold]` is 1 if the view sees the fold, else 0.  Without a matrix, each fold is a view.
        """

    def totals(self, accumulators: Array, /) -> Array:
        """Sum accumulators (categories + 2, ...) over all categories, unknown and missing included."""

    def moments(self, accumulators: Array, layout: Layout, first_output: int, deviations: bool, /) -> MomentArrays:
        """Give N, S / N and, if `deviations`, N - 1 and N * Q - S**2, each exact and then rounded once.

        N is a count or a sum of weights, S the sum and Q the sum of squares of a target.

        Accumulators are (..., n_classes, layout.width); outputs are the classes from `first_output` on.
        """

    def m_estimates(self, accumulators: Array, layout: Layout, first_output: int, m: float, prior: Ratio, /) -> Array:
        """Give (S + m * mu) / (n + m) of each cell and output, exact and then rounded once.

        Accumulators are as for `moments`; mu, the exact prior, is broadcast to the cells.
        """

    def leave_one_out(self, accumulators: Array, rows: Rows, layout: Layout, /) -> Array:
        """Give the digits of the sums of each row's category without the row: (rows, n_classes, layout.width)."""

    def ordered(self, rows: Rows, ties: Array | None, layout: Layout, carry: Carry, /) -> Array:
        """Give the digits of the sums of each row's category before the row, in order: (rows, n_classes, layout.width).

        `carry` holds the sums of all earlier rows and is updated, so that the next chunk can follow.  `ties` has a
        number for each row, and these do not decrease; rows with one number do not see each other, even in different
        chunks.
        """

    def sum_agreements(self, queries: Array, codes: Array, measures: Array, /) -> Array:
        """Sum int64 measures (rows, n) over all rows, by query and by the features in which they agree with it.

        Queries and rows are codes (features, number); negative codes agree with nothing.  The result is (queries,
        2**features, n); bit i of the second index says that feature i agrees.
        """


class FusedOps(Protocol):
    """Operations that take one pass over the rows where other backends take several.

    A backend may lack some of them.  Without `descend_rows`, Python loops over the rows, and without `merge_pairs` over
    the merges.  `log_odds_moments`, `conjunction_sums`, `conjunction_gains`, `score_conjunctions`, `fold_sums`,
    `seen_from`, `sort_codes` and `encodings_by_age` are replaced by array expressions.

    The passes between sums and encodings serve the rules that `formulas.smoothing` names.  They are defined by
    array expressions, which backends without these passes use: `encoding_rule.SeenSums.table`,
    `leave_one_out.Evaluation` and `fitting.ordered.SequentialScan`.
    """

    def encode_keys_by_fold(
        self,
        keys: KeyColumns,
        rows: FoldedRows,
        rule: FusedRule,
        population: PopulationMoments,
        out: KeyEncodings,
        /,
    ) -> tuple[Sequence[KeyCounts], int] | None:
        """Write the training encodings of many keys by fold, and sum for each key the rows that new rows see.

        Its definition is `encode_categories` and `gather` for one key after the other.  The second result is the number
        of encodings that the type of `out` cannot hold.  If an encoding lies so close to the middle of two floats that
        only its digits decide the rounding, the result is None, and the caller has to write all encodings.
        """

    def narrow_codes(self, columns: Sequence[Codes], sizes: Sequence[int], /) -> Any:
        """Give the codes of columns in the form that `encode_keys_by_fold` reads, in as few bytes as they need.

        `sizes` are the numbers of codes; a missing value, -1, becomes the last code of its column.
        """

    def sum_keys(self, keys: KeyColumns, rows: FoldedRows, /) -> list[KeyCounts]:
        """Sum the rows of many keys by fold and class: (categories + 2, folds * classes, layout.width) of each key.

        Which folds a view sees is not read.  Its definition is `accumulate` for one key after the other.
        """

    def look_up_keys(self, keys: KeyColumns, tables: KeyTables, folds: Folds, step: int, out: KeyEncodings, /) -> Array:
        """Write the encodings of rows by many keys, and count for each key the rows with an unknown category.

        Only the rows 0, step, 2 * step and so on are counted.  Its definition is `CategoryIndex.lookup` and `gather`
        for one key after the other.
        """

    def descend_rows(
        self,
        rows: Rows,
        order: Array,
        first: Array,
        penalties: Array,
        learning_rate: float,
        factors: Array,
        /,
    ) -> None:
        """Take a step down the gradient of every row, in order, and change `factors` (lines, components) in place.

        The factors of the categories of column d are the lines from first[d] on; codes of rows (rows, columns) are at
        least 0, and each row has a weight.  Its definition is `factors.descent.descend_by_loops`.
        """

    def merge_pairs(self, distances: Array, weights: Array, n_merges: int, /) -> Array:
        """Merge the cheapest pair of Ward's clusters again and again; give the cluster that each was merged into.

        `distances` are squared, in the order of SciPy's `pdist`.  Its definition is `cluster.ward.merge_pairs`.
        """

    def fold_sums(self, values: Array, steps: Array, ends: list[int], /) -> Array:
        """Fold sums of patterns (entries, n), and a line of zeros, into sums of subsets, feature by feature.

        `steps` and `ends` are those of a `proximity.folding.Block`.  Its definition is `proximity.folding.fold_sums`.
        """

    def log_odds_moments(
        self, values: Array, offset: Array, weight: Array | None, bits: tuple[int, int], /
    ) -> tuple[Array, Array, Array]:
        """Give (y - p) / h and h = p (1 - p) of rows, with p from their log-odds, and the log-likelihood.

        The first is in integers of bits[1] bits; h is weighted, in integers of bits[0] bits.  The definition is
        `tuning.working_response.at_log_odds`.
        """

    def conjunction_sums(
        self,
        codes: tuple[Array, Array | None],
        sizes: tuple[int, int],
        folds: Array,
        n_folds: int,
        response: Array,
        information: Array | None,
        /,
    ) -> tuple[int, tuple[Array, Array], Array]:
        """Sum h and h * z of rows by fold and pair of codes, or by the first code if there is no second one.

        `sizes` are the numbers of codes.  The results are the number of pairs with rows; the codes of the pairs that
        have weight in several folds, in order; and their sums, int64 (folds, pairs, 2).  Other pairs with sums of 0 may
        be among them.  Its definition is `tuning.steps.SharedSums.of` for joined codes.
        """

    def conjunction_gains(
        self,
        own: Array,
        visibility: Array,
        parts: Sequence[Array],
        ridge: float,
        numbers: Sequence[float],
        steps: Array,
        /,
    ) -> Array:
        """Give the effect of a conjunction on an additive model: gain, spread, freedom, sum of W by view (views, 4).

        Its definition is `tuning.steps.Steps.by_arrays`.  `own` are the sums of `conjunction_sums`.  `visibility`
        (views, folds) tells which folds each view sees; the gain of a view is measured on the fold of the same number.
        `parts` has the category of every column.  With a negative `ridge`, steps follow from the variance instead.
        `numbers` are the units of W and S, then powers of two for the binary positions of S, the spread and the gains,
        then the longest step.  `steps` (views, categories) is overwritten; it holds zeros before, and may be empty.
        """

    def score_conjunctions(
        self,
        keys: KeyColumns,
        absent: Sequence[int],
        rows: FoldedResponses,
        ridge: float,
        numbers: Sequence[float],
        /,
    ) -> tuple[Array, Array]:
        """Give gain, spread, freedom and sum of W by key and view (keys, folds + 1, 4), and the number of categories.

        The first column of every key is the fold of the rows; all keys have the same number of other columns.  `absent`
        has for each column the code that stands for no category, or -1.  The last view sees all rows, and has no gain.
        Only categories with rows are counted.  Its definition is `conjunction_sums` and `conjunction_gains` for one key
        after the other.
        """

    def seen_from(self, sums: Array, spans: Array, factors: Array, /) -> Array:
        """Multiply sums (..., steps, classes, width) by a factor and a power of two for each step (steps, 2).

        Each line of `spans` (sums, 4) has the range of a sum's columns in `sums`, then the range of digits that the
        result keeps of its product.  Its definition is `sums.decay.multiply_sums`.
        """

    def encode_categories(
        self,
        accumulators: Array,
        layout: Layout,
        visibility: Visibility,
        rule: FusedRule,
        population: PopulationMoments,
        dtype: Any,
        /,
    ) -> tuple[Array, Array, int] | None:
        """Give the encodings (categories + 2, views, outputs), and tell which are unseen (categories + 2, views).

        Encodings are float64, or `dtype` if that costs nothing; the third result is the number of encodings that
        `dtype` cannot hold.

        The priors are those of `population`, not of the rule.  With `LESS_ONE_ROW` there is one fold, and a view for
        each class, which sees one row less of this class; if the class has no row, the encoding is 0.  If the sums are
        too wide for this pass, the result is None.
        """

    def leave_one_out_encodings(
        self,
        accumulators: Array,
        total: Array,
        rows: Rows,
        layout: Layout,
        rule: FusedRule,
        out: RowEncodings,
        /,
    ) -> int | None:
        """Write the encoding of every row from all others.

        `accumulators` (categories + 2, n_classes, width) are the sums of all rows, `total` their sum over categories.
        The result is the number of encodings that the type of `out` cannot hold.  If the sums are too wide for this
        pass, or if it cannot write to `out`, the result is None, and the caller has to write all encodings.
        """

    def ordered_encodings(
        self,
        rows: Rows,
        shape: SumShape,
        order: RowOrders,
        burn_in: int,
        rule: FusedRule,
        out: RowEncodings,
        /,
    ) -> Written | None:
        """Write the encoding of every row from the rows before it; the first row sees nothing, and its prior is NaN.

        There may be at most `most_ordered_rows`.  The rest is as in `leave_one_out_encodings`.
        """

    def most_ordered_rows(self, layout: Layout, /) -> int:
        """Give the largest number of rows that `ordered_encodings` takes if their sums have this layout."""

    def sort_codes(self, codes: Array, n_codes: int, /) -> tuple[Array, Array]:
        """Give rows in the order of their codes, which are not negative, and these codes as int64.

        Rows of one code keep their order.
        """

    def encodings_by_age(
        self,
        rows: Rows,
        shape: SumShape,
        order: TimeOrder,
        burn_in: int,
        rule: FusedRule,
        out: RowEncodings,
        /,
    ) -> int | None:
        """Write the encoding of every row, and its prior, from the earlier rows that a window or half-life lets it see.

        If the order has steps, rows are weighted as in `cpu_fallback.decay`.  There may be at most 2**30 rows.  The
        rest is as in `leave_one_out_encodings`.  Its definition is `fitting.ordered.AgeingScan`.
        """


class DeferredCopy(Protocol):
    """A copy of an array on the host, which is made when it is first needed; a GPU holds the array until then."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""

    def on_device(self) -> Array | None:
        """Give the array if the current GPU still holds it, else None."""

    @property
    def on_host(self) -> Array:
        """Give the copy."""


class VocabularyIndexes(Protocol):
    """The vocabularies of some columns on a GPU."""

    def look_up(self, numbers: Sequence[Array | None], lookup: Callable[[int], Codes], /) -> Any:
        """Give the codes of columns in the form that `look_up_keys` reads; the last two are missing and unknown values.

        `numbers` are columns of whole numbers, and None for other columns.  For these, and for vocabularies of a long
        range, `lookup` gives the codes of a column by its number: -1 for missing values, -2 for unknown ones.
        """


class DeviceOps(Ops, Protocol):
    """Operations that only the backend of a GPU has, with arrays and text in its memory.

    cuDF and other libraries work on the default stream, and callers may have chosen another one.
    """

    strings: "DeviceStrings"

    def available(self) -> bool:
        """Tell whether a GPU can be used."""

    def current_device(self) -> int:
        """Give the number of the GPU that computes now."""

    def cast_encodings(self, encodings: Array, dtype: Any, /) -> Array:
        """Give encodings in the type of the output, each rounded once, and every NaN with the bits of `np.nan`.

        If they have this type and are contiguous, they are overwritten.  Arithmetic on a CPU keeps the bits of a NaN in
        its input; on a GPU it does not.
        """

    def defer_copy(self, array: Array, /) -> DeferredCopy:
        """Give a copy of an array on the host that is made when it is first needed."""

    def free_bytes(self) -> tuple[int, int]:
        """Give the free and the total bytes of its memory."""

    def index_numbers(self, values: Array, /) -> tuple[Array, Array]:
        """Give what `factorize` gives for whole numbers; the codes may be `UnwrittenCodes`."""

    def index_columns(self, columns: Sequence[Array], /) -> Sequence[tuple[Array, Array] | None]:
        """Do as `index_numbers` for each of some columns of equal length; None for a column whose range is long."""

    def read_vocabularies(self, categories: Sequence[Array], /) -> "VocabularyIndexes":
        """Index the sorted values of columns, so that the codes of all of them are written in one launch."""

    def leading_eigenvectors(
        self, matrix: Any, squared: bool, wanted: int, start: Array, tol: float, /
    ) -> tuple[Array, Array] | None:
        """Give the largest eigenvalues of a symmetric sparse matrix without negative eigenvalues, and their vectors.

        Matrix and result lie on the host.  With `squared`, they are the eigenvalues of the transpose times the matrix;
        this product is never computed.  The result is None if the solver cannot be used, or if a residual over the
        largest eigenvalue is above `tol`.
        """

    def adopt(self, data: Any) -> Array:
        """Give an array that shares the memory of another library's array on the GPU."""

    def wait_for_default_stream(self) -> None:
        """Let later work on the caller's stream wait for the default stream."""

    def default_stream_waits(self) -> None:
        """Let later work on the default stream wait for the caller's stream."""


class HostStrings(Protocol):
    """Turns rows of text or bytes into codes, on a CPU.

    `Strings(offsets, characters, validity, first)` are the rows of one array, in Arrow's buffers.
    """

    Strings: Any

    def factorize_strings(self, parts: list[Any]) -> tuple[Array, Any]:
        """Give the code (int32; -1 for null) of each row of all arrays, and the sorted distinct rows."""

    def prepare(self, strings: Any) -> Any:
        """Prepare distinct rows, so that others are looked up among them."""

    def lookup_strings(self, parts: list[Any], categories: Any) -> Array:
        """Give the index of each row among the prepared ones (int32): -1 for null, -2 if it is absent."""


class DeviceStrings(Protocol):
    """Turns rows of text or bytes of one array into codes, on a GPU; a mask marks nulls.

    `Strings(starts, ends, characters)` are the rows: row i is characters[starts[i]:ends[i]].
    """

    Strings: Any

    def factorize_strings(self, strings: Any, nulls: Array | None = None) -> tuple[Array, Any]:
        """Give the code (int32; -1 for null) of each row, and the sorted distinct rows."""

    def prepare(self, strings: Any) -> Any:
        """Prepare distinct rows, so that others are looked up among them."""

    def lookup_strings(self, strings: Any, categories: Any, nulls: Array | None = None) -> Array:
        """Give the index of each row among the prepared ones (int32): -1 for null, -2 if it is absent."""

    def strings_to_device(self, offsets: Array, characters: Array) -> Any:
        """Copy rows in Arrow's buffers to the GPU."""

    def strings_to_host(self, strings: Any) -> tuple[Array, Array]:
        """Copy rows to the host: Arrow's offsets and characters."""


BACKENDS = {
    "numpy": "cpu_fallback",
    "compiled": COMPILED,
    "cuda": "gpu_encode.cuda",
    "cuda-simulator": "gpu_encode.cuda",
}

_forced: list[str] = []


def load(module: str) -> Any:
    """Load a module of a backend if it is not loaded; no process forks meanwhile."""
    if module in sys.modules:
        return import_module(module)
    with LOADING:
        return import_module(module)


def resolve(n_rows: int, device: str = "cpu") -> Ops:
    """Give the backend for a call on `n_rows` rows.

    On "cuda" it is the backend of the GPU.  On the "cpu" it is NumPy for few rows, and the compiled backend for many.
    """
    name = _forced[-1] if _forced else device
    return host(n_rows) if name == "cpu" else cast(Ops, load(BACKENDS[name]))


def compiled_serves(n_rows: int, module: str = COMPILED) -> bool:
    """Tell whether the compiled backend, or its kernels for text, serve a call on `n_rows` rows.

    They do if they are faster than the alternative, the time to load them included.  If they are not compiled yet,
    another process begins to compile them; only a very large call waits for it, since it is faster even so.
    """
    if n_rows < LOADED_ROWS:
        return False
    if module not in sys.modules:
        _rows_asked_for[module] += n_rows
        if max(n_rows, _rows_asked_for[module] // TIMES_ASKED) < LOADING_ROWS[module]:
            return False
    with LOADING:  # the first call loads a module that reads numba's version
        ready = compilation.is_ready()
    if ready or (n_rows >= WAITING_ROWS and compilation.mode() != "never"):
        return True
    compilation.start()
    return False


def host(n_rows: int) -> Ops:
    """Give the CPU's backend for a call on `n_rows` rows of host arrays, even if the caller computes with another."""
    if _forced and not _forced[-1].startswith("cuda"):
        name = _forced[-1]
    else:
        name = "compiled" if compiled_serves(n_rows) else "numpy"
    return cast(Ops, load(BACKENDS[name]))


def host_strings(n_rows: int, ops: Ops) -> HostStrings | None:
    """Give the kernels that turn text into codes for a backend of the CPU; None if Arrow does so."""
    if ops.__name__ != COMPILED or not compiled_serves(n_rows, STRINGS):  # type: ignore[attr-defined]
        return None
    return cast(HostStrings, load(STRINGS))


def holding(array: Array) -> Ops:
    """Give a backend for the device that holds an array, also if the caller computes with another backend."""
    return host(len(array)) if isinstance(array, np.ndarray) else resolve(len(array), "cuda")


def device_of(ops: Ops) -> str:
    """Give the device of a backend: "cpu" or "cuda"."""
    return "cuda" if ops.__name__ == BACKENDS["cuda"] else "cpu"  # type: ignore[attr-defined]


def memory_of(ops: Ops) -> str:
    """Name the memory that a backend computes in: "cpu", or the current GPU with its number."""
    if device_of(ops) == "cpu":
        return "cpu"
    return f"cuda:{devices.cuda().current_device()}"


def n_threads() -> int:
    """Number of threads on which large calls on the CPU run."""
    threads: int = load(f"{COMPILED}.threads").threads()
    return threads


def through(indices: Array, codes: Array, ops: Ops) -> Array:
    """Give `indices[code]` for each code, on the device of `ops`; `indices` lie on the host, and -1 stays -1."""
    if np.array_equal(indices, np.arange(len(indices))):
        return codes
    # As an index, -1 means the last element of the table, which is -1.
    table: Array = ops.to_device(np.append(indices, np.int32(MISSING)).astype(np.int32))
    return table[codes]


def put(array: Array, numbers: Array, values: Any) -> None:
    """Set the elements with these numbers, counted over all axes of the array."""
    # CuPy's assignment to rows by number uses 32 bits for their positions, its `put` 64.
    array.put(numbers, values)


def tiles(n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Split rows into tiles."""
    for start in range(0, n_rows, size):
        yield start, min(start + size, n_rows)


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Run every call inside the block on one backend, for any size of the data and any device.

    Parameters
    ----------
    name : {"numpy", "compiled", "cuda", "cuda-simulator"}
        The last two are one backend: on a GPU, and in numba's simulator (which NUMBA_ENABLE_CUDASIM=1 must have chosen
        before numba is loaded).

    Raises
    ------
    RuntimeError
        If the backend cannot run here; another backend is never used instead.

    Examples
    --------
    >>> from gpu_encode.seam.ops import resolve, use_backend
    >>> with use_backend("numpy"):
    ...     resolve(10_000_000).__name__
    'cpu_fallback'
    """
    check_option("use_backend", "name", name, tuple(BACKENDS))
    if name.startswith("cuda") and (not devices.has_gpu() or devices.simulated() != (name == "cuda-simulator")):
        raise _backend_cannot_run(name)
    _forced.append(name)
    try:
        yield
    finally:
        _forced.pop()


def _backend_cannot_run(name: str) -> RuntimeError:
    """Error for a backend that was chosen by name and cannot start."""
    needs = (
        "NUMBA_ENABLE_CUDASIM=1 and GPU_ENCODE_SIMULATED_ARRAYS=tests.cuda.stand_in in the environment before Python "
        "starts in a checkout, and numba-cuda and CuPy installed"
        if name == "cuda-simulator"
        else "a CUDA GPU, the CUDA extra, and NUMBA_ENABLE_CUDASIM not set"
    )
    return RuntimeError(f"The backend {name!r} cannot run here: it needs {needs}.")
