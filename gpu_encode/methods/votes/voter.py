"""The common base of the estimators of voting columns: parameters, and the encodings of training rows and new rows."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from cpu_fallback.exact import Floats
from gpu_encode.encoders.base import Encoder
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.fitting.fit import FitContext, prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.methods.predictor import Predictor
from gpu_encode.methods.votes.ascent import Ascent, ascend
from gpu_encode.methods.votes.phi import check_phi, put_on
from gpu_encode.methods.votes.rules import Votes, WeightedMean
from gpu_encode.schemes import Greedy
from gpu_encode.seam import ops
from gpu_encode.tables import frames
from gpu_encode.words.annotations import Estimator
from gpu_encode.words.errors.parameters import check_count, check_number, check_option
from gpu_encode.words.errors.targets import no_target


@dataclass(eq=False, repr=False)
class Voter(Predictor):
    """The base of `VoteClassifier` and `VoteRegressor`; each has its own default rule."""

    encoder: Estimator | None = None
    rule: str = ""
    _: KW_ONLY
    phi: Literal["identity", "log", "sqrt", "logit"] | float = "identity"
    estimator: Estimator | None = None
    clip: float = 1e-6
    tol: float = 1e-3
    max_rounds: int = 200
    _rules: ClassVar[tuple[str, ...]]

    def _usual_estimator(self) -> BaseEstimator:
        """Give the linear model that is used if none is given."""
        raise NotImplementedError

    def _check(self, X: Any, y: Any) -> None:
        """Raise an error for bad parameters, before anything is computed."""
        owner = type(self).__name__
        if frames.is_partitioned(X):
            raise TypeError(f"{owner} reads rows in memory, not partitions of Dask. Compute them first, or a sample.")
        check_option(owner, "rule", self.rule, self._rules)
        check_phi(owner, self.phi)
        check_number(owner, "clip", self.clip, low=0.0, high=0.25, open_low=True)
        check_number(owner, "tol", self.tol, low=0.0, high=1.0, open_low=True)
        check_count(owner, "max_rounds", self.max_rounds, low=1)
        if y is None:
            raise no_target(owner)
        self._warn_of_column(y)

    def _make_encoder(self, **changes: Any) -> Encoder:
        """Give the user's encoder, cloned, with indicators of unseen categories."""
        owner, given = type(self).__name__, self.encoder
        encoder = TargetEncoder() if given is None else given
        parameters = encoder.get_params(deep=False) if isinstance(encoder, Encoder) else {}
        if not {"indicators", "target_type"} <= parameters.keys():
            raise TypeError(f"The encoder of {owner} must be one like TargetEncoder. Got {given!r} instead.")
        if parameters.get("scale", "identity") != "identity":
            raise ValueError(
                f"The encoder of {owner} must leave encodings as they are, scale='identity'; {owner}(phi=) says on "
                f"which scale they vote. Got scale={parameters['scale']!r} instead."
            )
        asked: Encoder = clone(encoder).set_params(indicators=["unseen"], **changes)
        return asked

    def _encode_training_rows(self, encoder: Encoder, *given: Any) -> tuple[FitContext, Votes]:
        """Fit an encoder, and give the votes that its scheme allows for training rows."""
        parameters = encoder._parameters()
        if any(isinstance(scheme, Greedy) for scheme in parameters.every_scheme):
            raise ValueError(
                f"rule={self.rule!r} of {type(self).__name__} learns from training encodings, and those of Greedy hold "
                "each row's own target (a leak). Give the encoder cv=KFold(5), LeaveOneOut() or Ordered()."
            )
        context = prepare(parameters, Inputs(*given))
        arrays = encoder._fit_encodings(context)
        return context, Votes.of(context.rows.ops, arrays, means_of(encoder))

    def _encode_new_rows(self, X: Any) -> Votes:
        """Give the votes for new rows."""
        check_is_fitted(self, "encoder_")
        inputs, encoder = Inputs(X), self.encoder_
        encoder._check_names(inputs, encoder._model.selection, reset=False)
        backend = ops.resolve(inputs.frame.n_rows, inputs.device(encoder.device))
        arrays, _ = encoder._model.encode(inputs.frame, backend, type(self).__name__)
        return Votes.of(backend, arrays, means_of(encoder))

    def _fit_linear(self, context: FitContext, votes: Votes) -> None:
        """Train the linear model on the votes for training rows."""
        estimator = self._usual_estimator() if self.estimator is None else clone(self.estimator)
        to_host, weight = context.rows.ops.to_host, context.rows.weight
        given = {} if weight is None else {"sample_weight": to_host(weight)}
        y = to_host(context.targets[0].values)
        self.estimator_: Any = estimator.fit(votes.matrix(self.phi, self.clip), y, **given)

    def _weigh(self, votes: Votes, output: int, score: Callable[[Floats], Any], least_rise: float = 0.0) -> Ascent:
        """Find the weights of the votes for one output that give their mean the best score."""
        mean = self._mean(votes, output)

        def judge(weights: Floats, step: float) -> Iterator[Any]:
            return map(score, mean.raised(weights.tolist(), step))

        found = ascend(judge, np.zeros(votes.n_keys), self.tol, least_rise, self.max_rounds)
        # Sums of raised weights are rounded in another order.
        return replace(found, score=score(mean.at(found.numbers.tolist())))

    def _mean(self, votes: Votes, output: int) -> WeightedMean:
        silence = float(put_on(np.array([votes.means[output]]), self.phi, self.clip)[0])
        return WeightedMean(votes.on_scale(output, self.phi, self.clip), votes.seen, silence)


def means_of(encoder: Encoder) -> list[float]:
    """Give the mean of the target that new rows see, for each of several classes."""
    means = encoder._fitted().means()
    if len(means) != 1:
        raise ValueError(f"Votes are for one target. y has {len(means)}: fit an estimator to each.")
    return [float(mean) for mean in means[0]]
