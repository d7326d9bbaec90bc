"""A Preprocessor of Ray Data: training rows get training encodings in Ray's pipelines, too."""

from typing import Any

import pyarrow as pa
from ray.data.preprocessor import Preprocessor
from sklearn.base import clone

from gpu_encode.scale.engines import calls
from gpu_encode.scale.files.encoding import plain_output


class RayEncoder(Preprocessor):
    """A Preprocessor of Ray Data around an encoder.

    `fit_transform` gives training encodings, which no row's own target has touched.  `transform` gives them, too, if it
    gets the very dataset of the fit, and those of new rows to other datasets.

    Parameters
    ----------
    encoder : encoder
        Not fitted: any encoder of this library, or a `DistributedEncoder`.  Each fit fits a copy.  Its scheme must work
        on rows without numbers, such as ``KFold(5, by="visit_id")``.
    y : str or list of str, optional
        Columns of the target.
    sample_weight : str, optional
        The column of the weights of rows.

    Attributes
    ----------
    encoder_ : encoder
        The fitted encoder; ``encoder_.save(path)`` writes a file, which `gpu_encode.load` reads without Ray.

    Notes
    -----
    A dataset that is made of the training dataset (``dataset.filter(...)``, a copy) has other rows to Ray, and gets the
    encodings of new rows, with each row's own target in it.  A preprocessor that was pickled remembers no dataset.
    Options of Ray for its own tasks (``transform_batch_size=``) have no effect.

    Examples
    --------
    >>> from gpu_encode import KFold, TargetEncoder
    >>> from gpu_encode.engines import RayEncoder  # doctest: +SKIP
    >>> encoder = TargetEncoder(columns=["shop"], cv=KFold(5, by="visit_id"))
    >>> chain = Chain(RayEncoder(encoder, y="bought"), StandardScaler(columns=["hour"]))  # doctest: +SKIP
    >>> training = chain.fit_transform(visits)  # doctest: +SKIP
    >>> new = chain.transform(other_visits)  # doctest: +SKIP
    """

    def __init__(self, encoder: Any, y: str | list[str] | None = None, sample_weight: str | None = None) -> None:
        super().__init__()
        self.encoder, self.y, self.sample_weight = encoder, y, sample_weight
        self._training: tuple[Any, Any] | None = None

    def _fit(self, ds: Any) -> "RayEncoder":
        """Fit a copy of the encoder; the training encodings are computed later."""
        fitted = clone(self.encoder)
        self._training = ds, fitted.fit_transform(ds, self.y, sample_weight=self.sample_weight)
        self.encoder_ = fitted
        return self

    def _transform(self, ds: Any, *_: Any, **__: Any) -> Any:
        """Give training encodings to the training dataset, and those of new rows to others."""
        if self._training is not None and ds is self._training[0]:
            return self._training[1]
        return self.encoder_.transform(ds)

    def _transform_pandas(self, df: Any) -> Any:
        """Encode a batch of new rows, for a service."""
        encoder = getattr(self.encoder_, "encoder_", self.encoder_)
        if not hasattr(encoder, "_model"):
            raise TypeError(
                'The tables of this encoder lie in Ray: transform_batch needs DistributedEncoder(tables="broadcast").'
            )
        shared = plain_output(encoder), *calls.columns_of_new_rows(encoder, [*df.columns])
        rows = calls.transform_table(shared, pa.Table.from_pandas(df, preserve_index=False)).to_pandas()
        return rows.set_axis(df.index)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the training dataset, which other processes do not have."""
        return {**super().__getstate__(), "_training": None}
