"""The candidates of `tune`: schemes, and values of the parameter that says how strongly an encoder shrinks."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from gpu_encode.encoders.catboost import CatBoostEncoder
from gpu_encode.encoders.impact import ImpactEncoder
from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.encoders.weight_of_evidence import WeightOfEvidenceEncoder
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.impact import Impact
from gpu_encode.formulas.smoothing import MEstimate, PartialPooling, Sigmoid, Smoothing
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.schemes import Greedy, KFold, LeaveOneOut, Ordered, Scheme
from gpu_encode.schemes import folds as given_schemes
from gpu_encode.sums.moments import Needs
from gpu_encode.words.errors.parameters import (
    no_ages,
    no_cv_by_column,
    scheme_without_held_out_rows,
)

# Ten values a decade (the R10 series), as text, since computed powers could differ between machines.
PREFERRED = ("1", "1.25", "1.6", "2", "2.5", "3.15", "4", "5", "6.3", "8")
SIGMOID_COUNTS = (5.0, 20.0, 100.0)
SIGMOID_WIDTHS = (1.0, 10.0)
WITHOUT_FOLDS = (Greedy, LeaveOneOut, Ordered)
# For each encoder, the parameter that is chosen, and the parameter with its priors.
CHOSEN: dict[type[SchemeEncoder], tuple[str, str | None]] = {
    TargetEncoder: ("smooth", "prior"),
    ImpactEncoder: ("smooth", None),
    WeightOfEvidenceEncoder: ("regularization", None),
    CatBoostEncoder: ("weight", "priors"),
}


@dataclass(frozen=True, eq=False)
class Candidate:
    """One combination of values of the chosen parameters.

    Parameters
    ----------
    value : object
        Value of `smooth`, `regularization` or `weight`, as given.
    prior : object
        Value of `prior` or `priors`; None if priors are not compared.
    parameters : Parameters
        Parameters of the encoder with these values; its statistics are those that predict the target.
    """

    value: Any
    prior: Any
    parameters: Parameters


class EverySum(Smoothing):
    """Needs all sums that any of several statistics needs, so that sums are rounded once for all of them."""

    def __init__(self, statistics: Sequence[Statistic] = ()) -> None:
        self.statistics = statistics

    @property
    def needs(self) -> Needs:
        """Squares are always needed, since the errors of continuous targets are computed from them."""
        needs = [statistic.needs for statistic in self.statistics]
        return Needs(
            squares=True,
            digits=any(one.digits for one in needs),
            totals=any(one.totals for one in needs),
            totals_from_above=any(one.totals_from_above for one in needs),
            others=any(one.others for one in needs),
        )


def chosen_of(encoder: Any) -> tuple[str, str | None]:
    """Give the names of the parameters that are chosen for an encoder: the smoothing, and the priors.

    Raises
    ------
    TypeError
        If the encoder has no such parameter, or cannot be cloned.
    ValueError
        If the encoder reads no target.
    """
    known = next((names for kind, names in CHOSEN.items() if isinstance(encoder, kind)), None)
    if known is None:
        names = ", ".join(kind.__name__ for kind in CHOSEN)
        raise TypeError(
            f"tune takes one of {names}, not fitted or fitted, which have a parameter for the shrinkage of categories. "
            f"Got {type(encoder).__name__} instead."
        )
    if isinstance(encoder.cv, Iterator):
        raise _splits_used_once(encoder.cv)
    if not encoder._needs_target:
        raise ValueError(
            f"statistic={encoder.statistic!r} of {type(encoder).__name__} reads no target, so there is nothing to "
            'predict, and nothing to choose by. Take "mean", "borders" or "buckets".'
        )
    return known


def default_weights() -> list[float]:
    """Give 51 numbers of rows from 0.1 to 10,000."""
    return [*(float(f"{digits}e{power}") for power in range(-1, 4) for digits in PREFERRED), 1e4]


def default_smoothings() -> list[Any]:
    """Give the plain mean, 51 m-estimates from 0.1 to 10,000, six sigmoids, empirical Bayes and partial pooling."""
    sigmoids = [Sigmoid(k, f) for k in SIGMOID_COUNTS for f in SIGMOID_WIDTHS]
    return [None, *(MEstimate(m) for m in default_weights()), *sigmoids, "auto", PartialPooling()]


def default_values(encoder: SchemeEncoder, name: str) -> list[Any]:
    """Give the values of the chosen parameter that are compared by default."""
    if name != "smooth":
        return list(default_weights())
    # For `ImpactEncoder`, None means another smoothing.
    plain = 0.0 if isinstance(encoder, ImpactEncoder) else None
    return [plain, *default_smoothings()[1:]]


def checked_candidates(encoder: SchemeEncoder, values: Any, priors: Any) -> list[Candidate]:
    """Give every value with every prior, checked; ValueError for one with which the encoder could not be fitted."""
    name, of_prior = chosen_of(encoder)
    if isinstance(encoder.cv, dict):
        raise no_cv_by_column("tune")
    values = default_values(encoder, name) if values is None else values
    if not isinstance(values, (list, tuple)) or not values:
        raise _no_list_of("smoothings", values, "[None, 1.0, 10.0, 'auto', Sigmoid(k=5)]")
    if priors is not None and of_prior is None:
        raise ValueError(f"{type(encoder).__name__} has no prior to choose. Leave out `priors`.")
    if priors is not None and (not isinstance(priors, (list, tuple)) or not priors):
        raise _no_list_of("priors", priors, "['mean', 'category_mean', 0.5]")
    candidates = []
    for prior in [None] if priors is None else priors:
        for value in values:
            # Reading the parameters needs no clone, which would take longer than a small likelihood.
            one = copy(encoder)
            setattr(one, name, value)
            if of_prior is not None and priors is not None:
                setattr(one, of_prior, prior)
            candidates.append(Candidate(value, prior, of_prediction(one._parameters())))
    return candidates


def of_prediction(parameters: Parameters) -> Parameters:
    """Give the parameters with which the target is predicted: an impact is predicted by the mean from which it is made.

    Predictions are on the target's own scale, for every class.
    """
    statistics = [one.smoothing if isinstance(one, Impact) else one for one in parameters.every_statistic]
    by_key = dict(zip(parameters.by_key, statistics[1:], strict=True))
    prior = "mean" if isinstance(parameters.statistic, Impact) else parameters.prior
    return replace(parameters, statistic=statistics[0], by_key=by_key, prior=prior, drop=None, scale="identity")


def check_held_out(scheme: Scheme) -> None:
    """Raise ValueError for a scheme that holds out no folds, or whose folds see rows by their age."""
    if isinstance(scheme, WITHOUT_FOLDS):
        raise scheme_without_held_out_rows(scheme)
    if scheme.by_age:
        raise no_ages("tune", scheme)


def checked_schemes(
    schemes: Any, encoder: SchemeEncoder, parameters: Parameters, folds: int
) -> list[tuple[Any, Scheme]]:
    """Give schemes as given, and resolved; by default the encoder's own scheme, if it has folds."""
    if schemes is None:
        if isinstance(parameters.scheme, WITHOUT_FOLDS):
            scheme = KFold(folds)
            scheme.check()
            return [(scheme, scheme)]
        check_held_out(parameters.scheme)
        return [(encoder.cv, parameters.scheme)]
    if not isinstance(schemes, (list, tuple)) or not schemes:
        raise _no_list_of("schemes", schemes, "[KFold(5), KFold(20)]")
    candidates = []
    for given in schemes:
        if isinstance(given, Iterator):
            raise _splits_used_once(given)
        scheme = given_schemes.resolve(given, encoder.shuffle, encoder.random_state)
        check_held_out(scheme)
        candidates.append((given, scheme))
    if any(scheme.used_columns() != candidates[0][1].used_columns() for _, scheme in candidates):
        raise ValueError(
            "The listed schemes read different columns of X, which are then not encoded, so their likelihoods are of "
            "different columns. List schemes that read the same columns; or tune for each scheme separately."
        )
    return candidates


def _no_list_of(name: str, value: object, example: str) -> ValueError:
    """Error for a parameter that must be a list of candidates, and is not."""
    return ValueError(f"The {name!r} parameter of tune must be a list, for example {example}. Got {value!r} instead.")


def _splits_used_once(cv: object) -> TypeError:
    """Error for splits that can be read only once."""
    return TypeError(
        f"cv gives its splits only once ({type(cv).__name__}), and the tuned encoder needs them again. Pass list(cv)."
    )
