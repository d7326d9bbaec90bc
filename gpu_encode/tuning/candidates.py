"""What is compared: smoothings, and schemes that hold out folds."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.errors.parameters import no_list_of, scheme_without_held_out_rows, splits_used_once
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas import smoothing
from gpu_encode.formulas.smoothing import MEstimate, PartialPooling, Sigmoid
from gpu_encode.schemes import Greedy, KFold, LeaveOneOut, Ordered, Scheme
from gpu_encode.schemes import folds as given_schemes

# Ten values a decade (the R10 series), written down: powers by a library of mathematics differ by machine.
PREFERRED = ("1", "1.25", "1.6", "2", "2.5", "3.15", "4", "5", "6.3", "8")
SIGMOID_COUNTS = (5.0, 20.0, 100.0)
SIGMOID_WIDTHS = (1.0, 10.0)
WITHOUT_FOLDS = (Greedy, LeaveOneOut, Ordered)


def default_smoothings() -> list[Any]:
    """Give the plain mean, 51 m-estimates from 0.1 to 10,000, six sigmoids, empirical Bayes and partial pooling."""
    weights = [float(f"{digits}e{power}") for power in range(-1, 4) for digits in PREFERRED]
    sigmoids = [Sigmoid(k, f) for k in SIGMOID_COUNTS for f in SIGMOID_WIDTHS]
    return [None, *(MEstimate(m) for m in [*weights, 1e4]), *sigmoids, "auto", PartialPooling()]


def check_encoder(encoder: Any) -> None:
    """Raise TypeError for an encoder that has no smoothing, or that cannot be cloned."""
    if not isinstance(encoder, TargetEncoder):
        raise TypeError(
            "tune chooses the parameter `smooth` and so takes a TargetEncoder, not fitted or fitted. Got "
            f"{type(encoder).__name__} instead."
        )
    if isinstance(encoder.cv, Iterator):
        raise splits_used_once(encoder.cv)


def checked_smoothings(smoothings: Any, parameters: Parameters) -> list[tuple[Any, smoothing.Smoothing]]:
    """Give smoothings as given, and resolved; ValueError for one that the encoder could not be fitted with."""
    if smoothings is None:
        smoothings = default_smoothings()
    if not isinstance(smoothings, (list, tuple)) or not smoothings:
        raise no_list_of("smoothings", smoothings, "[None, 1.0, 10.0, 'auto', Sigmoid(k=5)]")
    candidates = []
    for given in smoothings:
        statistic = smoothing.resolve(given)
        replace(parameters, statistic=statistic).check()
        candidates.append((given, statistic))
    return candidates


def checked_schemes(
    schemes: Any, encoder: TargetEncoder, parameters: Parameters, folds: int
) -> list[tuple[Any, Scheme]]:
    """Give schemes as given, and resolved; the encoder's own where none is given and it has folds."""
    if schemes is None:
        if isinstance(parameters.scheme, WITHOUT_FOLDS):
            scheme = KFold(folds)
            scheme.check()
            return [(scheme, scheme)]
        return [(encoder.cv, parameters.scheme)]
    if not isinstance(schemes, (list, tuple)) or not schemes:
        raise no_list_of("schemes", schemes, "[KFold(5), KFold(20)]")
    candidates = []
    for given in schemes:
        if isinstance(given, Iterator):
            raise splits_used_once(given)
        scheme = given_schemes.resolve(given, encoder.shuffle, encoder.random_state)
        if isinstance(scheme, WITHOUT_FOLDS):
            raise scheme_without_held_out_rows(scheme)
        candidates.append((given, scheme))
    if any(scheme.used_columns() != candidates[0][1].used_columns() for _, scheme in candidates):
        raise ValueError(
            "The schemes listed read different columns of X, which are then not encoded, so their likelihoods are of "
            "different columns. List schemes that read the same; or tune for each alone."
        )
    return candidates
