"""The result of `tune`: a score for each smoothing and scheme, and the encoder with the best of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.study.text_tables import lay_out
from gpu_encode.study.tuning.candidates import Candidate
from gpu_encode.study.tuning.likelihood import Likelihood
from gpu_encode.study.tuning.sums import mean

LINES_SHOWN = 10


@dataclass(frozen=True)
class Score:
    """The likelihood of held-out rows for one smoothing and scheme.

    Parameters
    ----------
    smoothing : None, "auto", float or smoothing
        A value of `smooth`; or a number, for `regularization` or `weight`.
    scheme : int or scheme
        A value of `cv`.
    log_likelihood : float
        Per row (with weights, per unit of weight), averaged over columns and targets.
    standard_error : float
        Standard error of the mean of the folds' log-likelihoods; NaN for one fold.
    squared_error : float or None
        Mean squared error, averaged over columns and targets, if all targets are continuous.
    by_fold : tuple of float
        Log-likelihood of each fold; NaN for a fold in which no row is scored.
    prior : str, float or list, optional
        A value of `prior` or `priors`, if these were compared.
    roc_auc : float or None
        With ``scoring="roc_auc"``: the area under the ROC curve of held-out rows, averaged over folds, classes, columns
        and targets; NaN if no fold has rows of two classes.
    """

    smoothing: Any
    scheme: Any
    log_likelihood: float
    standard_error: float
    squared_error: float | None
    by_fold: tuple[float, ...]
    prior: Any = None
    roc_auc: float | None = None

    @classmethod
    def of(cls, candidate: Candidate, scheme: Any, likelihoods: Sequence[Likelihood]) -> "Score":
        """Average over columns, targets and predictions."""
        by_fold = tuple(
            mean([value for value in fold if not math.isnan(value)])
            for fold in zip(*(likelihood.by_fold for likelihood in likelihoods), strict=True)
        )
        errors = [one.squared_error for one in likelihoods if one.squared_error is not None]
        areas = [one.roc_auc for one in likelihoods if one.roc_auc is not None]
        return cls(
            candidate.value,
            scheme,
            mean([likelihood.mean for likelihood in likelihoods]),
            standard_error([value for value in by_fold if not math.isnan(value)]),
            mean(errors) if len(errors) == len(likelihoods) else None,
            by_fold,
            candidate.prior,
            mean(areas) if areas else None,
        )

    def as_dict(self) -> dict[str, Any]:
        """Give a row of a table: text and numbers."""
        return {
            "smoothing": name_of_smoothing(self.smoothing),
            **({} if self.prior is None else {"prior": repr(self.prior)}),
            "scheme": name_of_scheme(self.scheme),
            "log_likelihood": self.log_likelihood,
            "standard_error": self.standard_error,
            "squared_error": self.squared_error,
            **({} if self.roc_auc is None else {"roc_auc": self.roc_auc}),
        }


@dataclass(frozen=True)
class Tuned:
    """Result of `tune`.

    Parameters
    ----------
    encoder : TargetEncoder or a relative
        A clone, not fitted, with the best smoothing as `smooth` (or `regularization`, or `weight`), and the best prior
        and scheme if these were compared.  If columns were chosen separately, they are dicts by column.
    scores : tuple of Score
        In the order of the given candidates, scheme by scheme.
    by_column : dict of str to tuple of Score
        The scores of each column alone, if columns are chosen separately.
    """

    encoder: SchemeEncoder
    scores: tuple[Score, ...]
    by_column: dict[str, tuple[Score, ...]] = field(default_factory=dict)

    @property
    def best(self) -> Score:
        """The score with the highest likelihood; among equals the first."""
        return best_of(self.scores)

    @property
    def best_by_column(self) -> dict[str, Score]:
        """The score with the highest likelihood, for each column alone."""
        return {column: best_of(scores) for column, scores in self.by_column.items()}

    def as_dicts(self) -> list[dict[str, Any]]:
        """Give the scores as rows, for `pandas.DataFrame` or `polars.DataFrame`.

        If columns were scored separately, rows of the average have None as "column".
        """
        rows = [score.as_dict() for score in self.scores]
        if not self.by_column:
            return rows
        alone = [{"column": column, **score.as_dict()} for column, scores in self.by_column.items() for score in scores]
        return [{"column": None, **row} for row in rows] + alone

    def __repr__(self) -> str:
        ranked = sorted(self.scores, key=rank, reverse=True)
        named = ("smoothing", *(["prior"] if self.best.prior is not None else []), "scheme")
        of_area = self.best.roc_auc is not None
        rows = [(*named, "log-likelihood", "standard error", *(["roc_auc"] if of_area else []), "")]
        for score in ranked[:LINES_SHOWN]:
            row = score.as_dict()
            numbers = [f"{row['log_likelihood']:.6g}", f"{row['standard_error']:.2g}"]
            numbers += [f"{row['roc_auc']:.6g}"] if of_area else []
            chosen = "<- chosen" if score is self.best and not self.by_column else ""
            rows.append((*(row[name] for name in named), *numbers, chosen))
        more = len(ranked) - LINES_SHOWN
        return "\n".join(["Tuned", *lay_out(rows), *([f"... and {more} less likely"] if more > 0 else [])])


def best_of(scores: Sequence[Score]) -> Score:
    """Give the score with the highest likelihood, or area if it was asked for; among equals the first."""
    return max(scores, key=rank)


def rank(score: Score) -> float:
    """Log-likelihood, or the area if it was asked for, as a sort key; NaN comes last."""
    value = score.log_likelihood if score.roc_auc is None else score.roc_auc
    return -math.inf if math.isnan(value) else value


def standard_error(values: Sequence[float]) -> float:
    """Standard deviation (N - 1 in the denominator) over the root of N; NaN for fewer than two numbers."""
    if len(values) < 2:
        return math.nan
    if len(set(values)) == 1:
        return 0.0
    center = mean(values)
    return math.sqrt(mean([(value - center) * (value - center) for value in values]) / (len(values) - 1))


def name_of_smoothing(smoothing: Any) -> str:
    """Name with all parameters, also those with default values."""
    if not hasattr(smoothing, "get_params"):
        return repr(smoothing)
    parameters = ", ".join(f"{name}={value!r}" for name, value in smoothing.get_params().items())
    return f"{type(smoothing).__name__}({parameters})"


def name_of_scheme(scheme: Any) -> str:
    """Name, and the number of folds if it has one."""
    if scheme is None or isinstance(scheme, (int, str)):
        return repr(scheme)
    number = getattr(scheme, "n_splits", None)
    return f"{type(scheme).__name__}({'' if number is None else number})"
