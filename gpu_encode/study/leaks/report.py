"""`leak_report`: try an encoder on rows, and say whether its training encodings leak the target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array
from gpu_encode.encoders.base import Encoder
from gpu_encode.fitting.copies import number_rows, share_of_copies
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.seam import ops
from gpu_encode.study.leaks.flips import Moves, choose_rows, flip_rows
from gpu_encode.study.leaks.risks import risks_of_key, risks_of_rows
from gpu_encode.study.leaks.scores import Interval, Predicted, allowance, p_values, read_by_tree
from gpu_encode.study.leaks.structure import UNREAD, Key, has_keys, read_keys, takes_groups
from gpu_encode.study.leaks.trials import RowTargets, Trials, find_source, key_codes, same_bits
from gpu_encode.study.leaks.verdicts import LEAKS, ColumnReport, advice, conclude
from gpu_encode.study.text_tables import lay_out
from gpu_encode.tables import frames
from gpu_encode.tables.frames import Frame
from gpu_encode.words.annotations import Estimator, Table, Vector
from gpu_encode.words.errors.parameters import bad_parameter, check_count
from gpu_encode.words.terminal import printable

# Rows that are compared with one another.
MOST_COMPARED = 20_000

if TYPE_CHECKING:
    from gpu_encode.study.plots.leaks import LeakDisplay

# Shuffles, and flips, of one report: each fits the encoder again.
MOST_TRIALS = 1_000_000


@dataclass(frozen=True)
class LeakReport:
    """Result of `leak_report`; notebooks show it as a table.

    Parameters
    ----------
    encoder : str
    n_rows, n_shuffles, n_flips : int
    level : float
        Largest chance that any column is wrongly called "predictable".
    columns : tuple of ColumnReport
        One for each column of the output, in order.
    risks : tuple of str
        Dangers in the rows as they are, and in the groups.
    """

    encoder: str
    n_rows: int
    n_shuffles: int
    n_flips: int
    level: float
    columns: tuple[ColumnReport, ...]
    risks: tuple[str, ...]

    @property
    def leaks(self) -> list[str]:
        """Names of the columns that leak."""
        return [column.name for column in self.columns if column.verdict in LEAKS]

    @property
    def advice(self) -> str:
        """The result in one line."""
        return advice(self.columns)

    @property
    def learned(self) -> tuple[ColumnReport, ...]:
        """The columns that depend on the target; if none does, all columns."""
        return tuple(column for column in self.columns if column.verdict != "no target") or self.columns

    @property
    def others(self) -> str:
        """Names of the columns that do not depend on the target, in one line; empty if no column does."""
        names = [column.name for column in self.columns if column.verdict == "no target"]
        return f"Not learned from the target: {', '.join(names)}." if 0 < len(names) < len(self.columns) else ""

    def as_dicts(self) -> list[dict[str, Any]]:
        """Give a row for each column, for `pandas.DataFrame` or `polars.DataFrame`."""
        return [column.to_dict() for column in self.columns]

    def to_dict(self) -> dict[str, Any]:
        """Give the whole result as plain values, which can be written as JSON."""
        own = ("encoder", "n_rows", "n_shuffles", "n_flips", "level", "advice", "leaks")
        return {name: getattr(self, name) for name in own} | {"risks": list(self.risks), "columns": self.as_dicts()}

    def to_html(self) -> str:
        """Give a page that needs no other file."""
        from gpu_encode.study.leaks.page import page

        return page(self)

    def plot(self, ax: object = None) -> "LeakDisplay":
        """Draw both scores of each column with matplotlib; `ax_` and `figure_` of the display hold the result."""
        from gpu_encode.study.plots.leaks import LeakDisplay

        return LeakDisplay([column for column in self.columns if column.training is not None]).plot(ax)

    def _repr_html_(self) -> str:
        from gpu_encode.study.leaks.page import body

        return body(self)

    def __repr__(self) -> str:
        heads = ("column", "verdict", "training AUC", "new rows", "moved by its own target", "a row sees")
        rows: list[tuple[str, ...]] = [heads]
        for column in self.learned:
            scores = [
                "-" if one is None else f"{one.mean:.3f} ({one.low:.3f} to {one.high:.3f})"
                for one in (column.training, column.new)
            ]
            moved = f"{column.own_moved} of {column.flips}" if column.flips else "-"
            rows.append((column.name, column.verdict, *scores, moved, column.sees))
        told = dict.fromkeys(f"{column.verdict}: {column.words}" for column in self.learned)
        risks = [*self.risks, *(f"{column.name}: {risk}" for column in self.columns for risk in column.risks)]
        others = [self.others] if self.others else []
        said = map(printable, (f"{self.encoder}: {self.advice}", *others, *told, *risks))
        return "\n".join([next(said), *lay_out(rows), *said])


def leak_report(
    encoder: Estimator,
    X: Table,
    y: Vector,
    *,
    groups: Vector | None = None,
    sample_weight: Vector | None = None,
    n_shuffles: int = 10,
    n_flips: int = 20,
    level: float = 0.05,
    random_state: int = 0,
) -> LeakReport:
    """Say for each encoded column whether it leaks the target of its own rows, and with which evidence.

    There are three kinds of evidence.  The scheme of an encoder of this library says whose targets a row sees.  Flips:
    the target of one row is changed, everything is fitted again, and bits are compared; if the row's own encoding
    changes, it contains the row's own target.  Shuffles: targets that were shuffled at random cannot be predicted from
    X; if a small tree predicts them from training encodings, on rows that it was not fitted to, there is a leak.

    Parameters
    ----------
    encoder : estimator
        Any transformer with scikit-learn's interface; only copies of it are fitted.
    X : table of shape (n_rows, n_columns)
        A single table in memory, of a kind that the encoder takes.
    y : array of shape (n_rows,)
        One target, of classes or of numbers; it is passed to the encoder as a NumPy array.
    groups : array of shape (n_rows,), optional
        Rows that belong together.  They are passed to schemes that need groups; the report says whether folds split
        them.
    sample_weight : array of shape (n_rows,), optional
        Passed to `fit_transform`.
    n_shuffles : int, default=10
        At least 3; with fewer than 5, no difference can be significant at 0.05.
    n_flips : int, default=20
        Number of rows whose target is changed, one at a time.
    level : float, default=0.05
        Largest chance that any column is called "predictable" although none is.
    random_state : int, default=0

    Returns
    -------
    LeakReport

    Raises
    ------
    TypeError, ValueError
        If the rows are not one table in memory, `encoder` is not a transformer, its rows or output names depend on y,
        the target has only one value, or fewer than 50 rows have a target; and errors of the encoder.

    Notes
    -----
    The encoder is fitted `n_shuffles + n_flips + 2` times, and two trees are fitted for each column and shuffle.  Of a
    large table, give a sample of rows.  Only warnings of the first fit, with the original targets, are shown.

    For each shuffle, a tree of 16 leaves is fitted on half of the training encodings and scored by ROC AUC on the other
    half (at most 20,000 rows in all).  For comparison it is also scored on encodings that the same rows would get as
    new rows, with the targets shuffled again.  A target of more than ten values is divided at its median.  The
    difference of both scores, minus an allowance of three standard errors of a score or 0.03, is tested over the
    shuffles: the signs of differences are flipped, for all columns at once, and the largest mean over the columns is
    compared.  So the chance of a false alarm in any column is at most `level` (Westfall and Young, "Resampling-Based
    Multiple Testing", 1993).  The allowance is needed because folds leave out sums of rows, which trees can detect a
    little in any k-fold encodings.

    If rows have copies (see `gpu_encode.fitting.copies`), `n_shuffles` more fits give copies one target together.
    A column whose training encodings tell this target has the verdict "copies".

    The verdict "prior" means that the change is at most three times the change in rows of other values, and all changes
    have one direction, as changes of a mean over all rows have.  cuML's encoder has such a prior.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import Greedy, TargetEncoder, leak_report
    >>> X, y = np.arange(300).reshape(-1, 1) // 2, np.arange(300) % 3 % 2
    >>> leak_report(TargetEncoder(columns=[0], cv=Greedy()), X, y).leaks
    ['x0']
    >>> report = leak_report(TargetEncoder(columns=[0]), X, y)
    >>> report.leaks, report.columns[0].sees
    ([], 'other folds, of 5')
    """
    check_count("leak_report", "n_shuffles", n_shuffles, low=3, high=MOST_TRIALS)
    check_count("leak_report", "n_flips", n_flips, low=0, high=MOST_TRIALS)
    if not 0 < level < 1:
        raise bad_parameter("leak_report", "level", level, "must lie between 0 and 1")
    frame = read_table(encoder, X, y, groups)
    targets = RowTargets.read(y, frame.n_rows)
    given = {"groups": groups if takes_groups(encoder) else None, "sample_weight": sample_weight}
    trials = Trials(encoder, X, targets, {name: vector for name, vector in given.items() if vector is not None})
    random = np.random.default_rng(random_state)
    before, _ = trials.encode(targets.values, warn=True)
    scores = shuffle_rows(trials, before, n_shuffles, random)
    keys = find_keys(trials, frame, [*before], [*scores])
    known = [key.codes for key in keys.values() if key.codes is not None and key.sight != UNREAD]
    rows = choose_rows(targets, n_flips, known, random)
    moves, moved = flip_rows(trials, before, rows, {name: key.codes for name, key in keys.items()}, random)
    risks = risks_of_rows(targets) if any(key.sight is None or key.sight.by_order for key in keys.values()) else []
    predicted = judge(scores, targets, level, random)
    copies = Copies.find(frame, [*keys.values()], targets)
    scores = {} if copies is None else shuffle_rows(trials, before, n_shuffles, random, copies.cases)
    of_copies = judge(scores, targets, level, random)
    columns = report_columns([*before], keys, predicted, of_copies, moves, targets, frame)
    risks += [*risks_of_groups(groups, rows, moved), *risks_of_copies(copies)]
    name = type(encoder).__name__
    return LeakReport(name, frame.n_rows, n_shuffles, len(rows), level, tuple(columns), tuple(risks))


@dataclass(frozen=True, eq=False)
class Copies:
    """Rows that are in the table several times.

    Parameters
    ----------
    cases : int64 array (rows,)
        Rows of one case have the same values in all columns that were compared.
    share : float
        Share of the rows that have a copy.
    columns : tuple
        The columns that were compared, by name or position.
    """

    cases: NDArray[np.int64]
    share: float
    columns: tuple[Any, ...]

    @classmethod
    def find(cls, frame: Frame, keys: Sequence[Key], targets: RowTargets) -> "Copies | None":
        """Look for copies: in the columns that the encoder learns from, then in all columns of the table."""
        read = {position for key in keys if key.sight != UNREAD for position in key.members}
        codes = {j: found for j in range(frame.n_columns) if (found := column_codes(frame, j)) is not None}
        y, names = targets.values[targets.present], frame.names or range(frame.n_columns)
        for members in dict.fromkeys((tuple(sorted(read)), tuple(codes))):
            columns = [codes[j] for j in members]
            share = share_of_copies([column[targets.present] for column in columns], y, MOST_COMPARED) if columns else 0
            if share:
                return cls(number_rows(columns), share, tuple(names[j] for j in members))
        return None


def column_codes(frame: Frame, position: int) -> NDArray[np.int32] | None:
    """Give the code of each row in a column; None if its values cannot be categories, such as lists."""
    try:
        codes: NDArray[np.int32] = frame.keys(position, ops.host(frame.n_rows)).codes
    except (TypeError, ValueError):
        return None
    return codes


def read_table(encoder: Any, X: Any, y: Any, groups: Any) -> Frame:
    """Read the rows; raise TypeError if the encoder is not a transformer, or the rows are not one table in memory."""
    for method in ("fit_transform", "transform", "get_params"):
        if isinstance(encoder, type):
            raise TypeError(f"leak_report takes a transformer. Got a class instead. Write {encoder.__name__}().")
        if not hasattr(encoder, method):
            raise TypeError(
                f"leak_report takes a transformer. Got {type(encoder).__name__} instead, which has no {method}."
            )
    engine = frames.engine_holding(X)
    if engine is not None:
        raise TypeError(f"leak_report fits many times to rows in memory. Give a sample of the rows of {engine}.")
    if frames.is_collection(X) and frames.tables_of(X) is not None:
        raise TypeError("leak_report takes one table. Concatenate the tables of the list, or give one of them.")
    # The encoder itself warns of other vectors, and of groups that it takes.
    Inputs(X, y, groups=None if takes_groups(encoder) else groups).warn_of_order()
    return frames.read(X)


def shuffle_rows(
    trials: Trials,
    before: Mapping[str, Array],
    number: int,
    random: np.random.Generator,
    cases: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Measure how well trees predict shuffled targets, for the columns that change with the targets.

    With `cases`, rows of one case are copies: they keep one target together.

    Returns
    -------
    dict of str to float64 array (shuffles, 2)
        ROC AUC on training encodings, and on encodings of new rows.
    """
    targets, scores = trials.targets, dict[str, list[tuple[float, float]]]()
    for _ in range(number):
        shuffled, others = (targets.shuffle(random, cases) for _ in range(2))
        training, new = trials.encode(shuffled.values, with_new=True)
        refuse_other_names(before, training)
        if not scores:
            scores = {name: [] for name in before if name in new and not same_bits(before[name], training[name]).all()}
        for name, found in scores.items():
            of_rows, of_others = (
                (column[name][targets.present], one.labels[targets.present])
                for column, one in ((training, shuffled), (new, others))
            )
            found.append(read_by_tree(of_rows, of_others, random))
    return {name: np.array(found) for name, found in scores.items()}


def refuse_other_names(before: Mapping[str, Array], shuffled: Mapping[str, Array]) -> None:
    """Raise ValueError if a column does not exist with shuffled targets."""
    gone = next((name for name in before if name not in shuffled), None)
    if gone is not None:
        raise ValueError(
            f"leak_report compares columns under other targets, but {gone!r} does not exist under shuffled ones: "
            f"there are {', '.join([*shuffled][:10])}. Give a transformer whose output names do not depend on y."
        )


def find_keys(trials: Trials, frame: Frame, outputs: Sequence[str], read: Sequence[str]) -> dict[str, Key]:
    """Find for each output its column or joint key, and what its training rows see, if this is known."""
    names = names_of(frame)
    if isinstance(trials.encoder, Encoder) and has_keys(trials.encoder):
        keys = read_keys(trials.encoder, trials.X, trials.targets.values, frame, dict(trials.vectors))
        sources = {output: find_source(output, [*keys]) for output in outputs}
        alike = len({key.sight for key in keys.values()}) == 1
        # If several keys are encoded together, a column sees everything that these keys see.
        common = Key(None, (), next(iter(keys.values())).sight, None) if alike else Key()
        passed = {*names} - {*keys}
        found = {output: common if source is None else keys[source] for output, source in sources.items()}
        return {output: key for output, key in found.items() if output in read or output not in passed}
    by_position = frame.names is None and len(outputs) == frame.n_columns
    matched = [
        (output, names[number] if by_position else find_source(output.rpartition("__")[2], names))
        for number, output in enumerate(outputs)
        if output in read
    ]
    return {output: Key() if name is None else Key.of(name, frame, (names.index(name),)) for output, name in matched}


def names_of(frame: Frame) -> list[str]:
    """Give the names of the columns, or x0, x1, ... for columns without names."""
    return [str(name) for name in frame.names or [f"x{position}" for position in range(frame.n_columns)]]


def judge(
    scores: Mapping[str, NDArray[np.float64]], targets: RowTargets, level: float, random: np.random.Generator
) -> dict[str, Predicted]:
    """Test by shuffles, for all columns together, whether trees predict more from training encodings."""
    if not scores:
        return {}
    allowed = allowance(targets.labels[targets.present])
    gaps = np.array([found[:, 0] - found[:, 1] - allowed for found in scores.values()]).T
    chances = p_values(gaps, random).tolist()
    return {
        name: Predicted(
            Interval.of(found[:, 0].tolist(), level), Interval.of(found[:, 1].tolist(), level), chance, chance <= level
        )
        for (name, found), chance in zip(scores.items(), chances, strict=True)
    }


def report_columns(
    names: Sequence[str],
    keys: Mapping[str, Key],
    predicted: Mapping[str, Predicted],
    of_copies: Mapping[str, Predicted],
    moves: Mapping[str, Moves],
    targets: RowTargets,
    frame: Frame,
) -> Iterator[ColumnReport]:
    """Put together the results for each column."""
    for name in names:
        key, found, moved = keys.get(name, Key()), predicted.get(name, Predicted()), moves.get(name)
        if found.training is None and (moved is None or not moved.own):
            yield ColumnReport(name, key.name, "no target", "no target", 0, 0, None, None, found.p_value, ())
            continue
        kind, own, flips = (None, 0, 0) if moved is None else (moved.kind, moved.own, len(moved.flips))
        copied = of_copies.get(name, Predicted())
        verdict = conclude(kind, key.sight, found.significant, copied.significant)
        found = copied if verdict == "copies" else found
        yield ColumnReport(
            name,
            key.name,
            verdict,
            "unknown" if key.sight is None else key.sight.words,
            own,
            flips,
            found.training,
            found.new,
            found.p_value,
            () if key.codes is None else tuple(risks_of_key(key.codes, targets, frame, key.members)),
        )


def risks_of_groups(groups: Any, rows: Array, moved: Sequence[Array]) -> list[str]:
    """Say in how many flips the target of a row changed encodings of other rows of its group."""
    if groups is None or not len(rows):
        return []
    codes = key_codes(frames.read_grouping(groups, "groups", len(moved[0])), [0])
    split = 0
    for row, changed in zip(rows.tolist(), moved, strict=True):
        mates = codes == codes[row]
        mates[row] = False
        split += bool(changed[mates].any())
    told = f"in {split} of {len(rows)} flips a row's target moved encodings of other rows of its group."
    return [f"Groups straddle folds: {told} Take GroupKFold."] if split else []


def risks_of_copies(copies: Copies | None) -> list[str]:
    """Say what was found, and what to do."""
    if copies is None:
        return []
    columns = ", ".join(map(repr, copies.columns[:10])) + (", ..." if len(copies.columns) > 10 else "")
    told = (
        f"{copies.share:.1%} of the rows seem to be there several times: they equal another row in {columns} and in "
        "the target, more often than chance explains. Oversampling, bootstraps and joins make such copies. Give "
        f"GroupKFold a group for each case, such as groups=X.groupby([{columns}], dropna=False).ngroup(), or "
        "KFold(by=...) copies of these columns under other names; validate the model in such folds, too."
    )
    return [told]
