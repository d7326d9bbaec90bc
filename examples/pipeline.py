"""A scikit-learn Pipeline of encoder and model, on cuDF or host frames, and its cross-validation.

    python examples/pipeline.py
    python examples/pipeline.py --frames pandas --device cpu --rows 20000

`Pipeline` works on cuDF: it passes frames on unchanged, so an encoder and a model that take cuDF are enough.
Splitters, scorers and other steps of scikit-learn (`ColumnTransformer`, `StandardScaler`) do not work on cuDF: they
need NumPy, and cuDF does not convert to NumPy by itself.  The encoder passes other columns through, so no
`ColumnTransformer` is needed.  For `cross_val_score` the frames are copied to the host first; the encoder and XGBoost
may still compute on the GPU.
"""

from typing import Any

from orders import KEYS, arguments, auc, frames, has_gpu, on_host
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline
from xgboost import XGBClassifier

from gpu_encode import KFold, TargetEncoder


def pipeline(device: str) -> Pipeline:
    """Put an encoder before a model; `fit` calls `fit_transform` of the encoder, so the encodings are cross-fitted."""
    on = "cuda" if device == "cuda" or (device == "auto" and has_gpu()) else "cpu"
    encoder = TargetEncoder(columns=KEYS, smooth=10, cv=KFold(5), device=device, dtype="float32")
    return Pipeline([("encode", encoder), ("model", XGBClassifier(n_estimators=50, max_depth=6, device=on))])


def host(frame: Any) -> Any:
    """Give a frame whose rows scikit-learn can select."""
    return frame.to_pandas() if type(frame).__module__.startswith("cudf") else frame


def main() -> None:
    """Print the score on new rows, and the scores of cross-validation."""
    options = arguments(__doc__.splitlines()[0])
    X, y, X_new, y_new = frames(options.frames, options.rows)
    fitted = pipeline(options.device).fit(X, y)
    # `predict_proba` encodes by `transform`, which has seen the targets of training rows: so score new rows only.
    print(f"fitted once: test AUC {auc(y_new, fitted.predict_proba(X_new)):.3f}")
    # In each split, encoder and model are fitted on the training rows alone.
    scores = cross_val_score(pipeline(options.device), host(X), on_host(y), cv=3, scoring="roc_auc")
    print(f"cross-validated: test AUC {scores.mean():.3f} ({', '.join(f'{score:.3f}' for score in scores)})")


if __name__ == "__main__":
    main()
