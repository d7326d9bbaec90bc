"""What differs, and by how much more than folds differ among themselves."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t

Record = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Mean of paired differences over folds, and half the width of its 95 % interval."""

    mean: float
    half: float

    @property
    def is_noise(self) -> bool:
        """Whether the interval holds zero."""
        return not abs(self.mean) > self.half

    def __str__(self) -> str:
        """Give the difference and its interval; what is more than noise in bold."""
        text = f"{self.mean:+.4f} ± {self.half:.4f}"
        return text if self.is_noise else f"**{text}**"


def difference(one: list[float], other: list[float]) -> Difference:
    """Compare the scores of the same outer folds.

    Training rows of folds overlap, so their scores are not independent: the variance of the mean is s² (1/k + 1/(k-1)),
    with k folds and s² the sample variance of the differences (Nadeau and Bengio, 2003, "Inference for the
    generalization error"; 1/(k-1) is test rows over training rows), and the interval is Student's with k - 1 degrees.

    Examples
    --------
    >>> str(difference([0.81, 0.82, 0.83], [0.80, 0.81, 0.82]))
    '**+0.0100 ± 0.0000**'
    >>> difference([0.81, 0.84, 0.83], [0.80, 0.85, 0.82]).is_noise
    True
    """
    found = np.array(one) - np.array(other)
    k = len(found)
    spread = float(np.sqrt(found.var(ddof=1) * (1 / k + 1 / (k - 1))))
    return Difference(float(found.mean()), float(t.ppf(0.975, k - 1)) * spread)


def standard_error(scores: list[float]) -> float:
    """Standard error of a mean over folds, with the same correction."""
    k = len(scores)
    return float(np.sqrt(np.var(scores, ddof=1) * (1 / k + 1 / (k - 1))))
