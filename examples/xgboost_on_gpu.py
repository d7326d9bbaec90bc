"""From orders to encodings to gradient boosted trees, without leaving the GPU: cuDF, gpu_encode, XGBoost.

    python examples/xgboost_on_gpu.py
    python examples/xgboost_on_gpu.py --frames pandas --device cpu --rows 20000

It trains twice, on cross-fitted and on greedy encodings.  Greedy encodings of a training row contain its own target, so
their training score is higher; the score on new rows shows that this gain is not real.
"""

from typing import Any

from orders import KEYS, auc, compare_schemes
from xgboost import XGBClassifier

from gpu_encode import TargetEncoder


def scores(scheme: Any, options: Any, data: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    """Encode by a scheme, train, and give the score on training rows and on new rows."""
    X, y, X_new, y_new = data
    encoder = TargetEncoder(columns=KEYS, smooth=10, cv=scheme, device=options.device, dtype="float32")
    codes = encoder.fit_transform(X, y)  # of the kind of X, on the device of X
    model = XGBClassifier(n_estimators=100, max_depth=6, learning_rate=0.1, device=encoder.device_)
    model.fit(codes, y)
    return auc(y, model.predict_proba(codes)), auc(y_new, model.predict_proba(encoder.transform(X_new)))


def main() -> None:
    """Print both scores of both schemes."""
    compare_schemes(__doc__.splitlines()[0], scores)


if __name__ == "__main__":
    main()
