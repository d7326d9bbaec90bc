"""TunedEncoderCV: an encoder that chooses its smoothing at each fit, for pipelines and searches."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gpu_encode.encoders.base import publish_encoder
from gpu_encode.encoders.scheme import SchemeEncoder
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.formulas.smoothing import Smooth
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.study.tuning.choice import tune
from gpu_encode.study.tuning.results import Tuned
from gpu_encode.words.annotations import ArrayLike, Prior, Table, Vector
from gpu_encode.words.errors.parameters import KnownKeywords


@dataclass(eq=False, repr=False)
class TunedEncoderCV(KnownKeywords, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Choose an encoder's smoothing, prior and number of folds at each fit by `tune`, and encode with them.

    In a pipeline inside a cross-validation, each outer fold chooses from its own training rows.

    Parameters
    ----------
    encoder : TargetEncoder, ImpactEncoder, WeightOfEvidenceEncoder or CatBoostEncoder, optional
        It is cloned.  None: ``TargetEncoder()``.
    smoothings : list, optional
        Values of `smooth` (or of the parameter in its place) to choose from; None: those of `tune`.
    priors : list, optional
        Values of `prior` or `priors` to choose from.  None: the encoder's own.
    schemes : list, optional
        Values of `cv` to choose from.  None: the encoder's own.
    folds : int, default=5
        Number of held-out folds, if neither `schemes` nor `cv` has folds.
    per_column : bool, default=False
        Choose for each column separately.
    scoring : "roc_auc" or None, default=None
        None: choose by the likelihood of held-out rows.  "roc_auc": by the area under their ROC curve.

    Attributes
    ----------
    encoder_ : TargetEncoder or a relative
        The fitted encoder, with the chosen parameters; it can be saved and exported.
    tuned_ : Tuned
        The result of `tune`, with all scores.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    tune : The choice alone.

    Notes
    -----
    All training rows have a say in what is chosen.  So a row's own target can change which smoothing its training
    encoding has, but the sums in this encoding never contain it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from gpu_encode import TunedEncoderCV
    >>> rng = np.random.default_rng(0)
    >>> shops, rates = rng.integers(0, 20, 200), 0.3 + 0.4 * rng.random(20)
    >>> X, y = shops[:, None], (rng.random(200) < rates[shops]).astype(int)
    >>> model = make_pipeline(TunedEncoderCV(smoothings=[1.0, 10.0, 100.0]), LogisticRegression()).fit(X, y)
    >>> model[0].encoder_
    TargetEncoder(smooth=10.0)
    """

    encoder: SchemeEncoder | None = None
    _: KW_ONLY
    smoothings: Sequence[Smooth] | None = None
    priors: Sequence[Prior] | None = None
    schemes: Sequence[CrossFitting] | None = None
    folds: int = 5
    per_column: bool = False
    scoring: Literal["roc_auc"] | None = None

    def fit(self, X: Table, y: Table, *, sample_weight: Vector | None = None, groups: Vector | None = None) -> Self:
        """Choose, and learn the encodings of new rows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `TargetEncoder.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As in `tune` and in `TargetEncoder.fit`; the estimator is then as it was.

        Examples
        --------
        >>> TunedEncoderCV(smoothings=[0.0, 5.0]).fit([["a"], ["b"]] * 6, [0, 1] * 6).encoder_.smooth
        0.0
        """
        tuned = self._choose(X, y, sample_weight, groups)
        tuned.encoder.fit(X, y, sample_weight=sample_weight, groups=groups)
        self._keep(tuned)
        return self

    def fit_transform(
        self, X: Table, y: Table, *, sample_weight: Vector | None = None, groups: Vector | None = None
    ) -> Any:
        """Choose, learn the encodings of new rows, and give those of the training rows.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `TargetEncoder.fit_transform`.

        Returns
        -------
        table of shape (n_rows, n_outputs)
            As from `TargetEncoder.fit_transform`.

        Raises
        ------
        ValueError, TypeError
            As in `tune` and in `TargetEncoder.fit`; the estimator is then as it was.

        Examples
        --------
        >>> TunedEncoderCV(folds=2).fit_transform([["a"], ["b"]] * 6, [0, 1] * 6).shape
        (12, 1)
        """
        tuned = self._choose(X, y, sample_weight, groups)
        encoded = tuned.encoder.fit_transform(X, y, sample_weight=sample_weight, groups=groups)
        self._keep(tuned)
        return encoded

    def transform(self, X: Table) -> Any:
        """Give the encodings of new rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)

        Returns
        -------
        table of shape (n_rows, n_outputs)
            As from `TargetEncoder.transform`.

        Examples
        --------
        >>> encoder = TunedEncoderCV(smoothings=[None, 5.0]).fit([["a"], ["b"]] * 6, [0, 1] * 6)
        >>> encoder.transform([["a"], ["b"]]).tolist()
        [[0.0], [1.0]]
        """
        check_is_fitted(self, "encoder_")
        return self.encoder_.transform(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Any:
        """Name the columns of the result.

        Parameters
        ----------
        input_features : list of str, optional
            Names of the columns of X, if these had none at fit.

        Returns
        -------
        ndarray of str

        Examples
        --------
        >>> TunedEncoderCV().fit([["a"], ["b"]] * 6, [0, 1] * 6).get_feature_names_out(["shop"]).tolist()
        ['shop']
        """
        check_is_fitted(self, "encoder_")
        return self.encoder_.get_feature_names_out(input_features)

    def set_output(self, *, transform: Literal["default", "pandas", "polars"] | None = None) -> Self:
        """Choose the kind of the result.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            As in `TargetEncoder.set_output`.

        Returns
        -------
        self

        Examples
        --------
        >>> encoder = TunedEncoderCV().set_output(transform="pandas")
        >>> type(encoder.fit_transform([["a"], ["b"]] * 6, [0, 1] * 6)).__name__
        'DataFrame'
        """
        if transform is not None:
            # What scikit-learn's clone keeps.
            self._sklearn_output_config = {"transform": transform}
            if hasattr(self, "encoder_"):
                self.encoder_.set_output(transform=transform)
        return self

    def __sklearn_tags__(self) -> Any:
        return (TargetEncoder() if self.encoder is None else self.encoder).__sklearn_tags__()

    def _choose(self, X: Table, y: Table, sample_weight: Vector | None, groups: Vector | None) -> Tuned:
        encoder = TargetEncoder() if self.encoder is None else self.encoder
        names = ("smoothings", "priors", "schemes", "folds", "per_column", "scoring")
        given = {name: getattr(self, name) for name in names}
        tuned = tune(encoder, X, y, sample_weight=sample_weight, groups=groups, **given)
        if kind := getattr(self, "_sklearn_output_config", {}).get("transform"):
            tuned.encoder.set_output(transform=kind)
        return tuned

    def _keep(self, tuned: Tuned) -> None:
        self.tuned_ = tuned
        publish_encoder(self, tuned.encoder)
