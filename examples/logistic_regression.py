"""From orders to encodings to logistic regression: cuDF, gpu_encode and cuML on a GPU, scikit-learn elsewhere.

python examples/logistic_regression.py
python examples/logistic_regression.py --frames polars --device cpu --rows 20000
"""

from importlib import import_module
from typing import Any

from orders import KEYS, auc, compare_schemes

from gpu_encode import TargetEncoder


def scores(scheme: Any, options: Any, data: tuple[Any, Any, Any, Any]) -> tuple[float, float]:
    """Encode by a scheme, train, and give the score on training rows and on new rows."""
    X, y, X_new, y_new = data
    encoder = TargetEncoder(columns=KEYS, smooth=10, cv=scheme, device=options.device)
    codes, new_codes = encoder.fit_transform(X, y), encoder.transform(X_new)
    # cuML's class has scikit-learn's name and parameters, and takes the cuDF frames as they are.
    library = "cuml.linear_model" if options.frames == "cudf" else "sklearn.linear_model"
    model = import_module(library).LogisticRegression(max_iter=1000)
    model.fit(scaled(codes), y)
    return auc(y, model.predict_proba(scaled(codes))), auc(y_new, model.predict_proba(scaled(new_codes)))


def scaled(codes: Any) -> Any:
    """Give the encodings, which are shares, and the price in hundreds: gradient descent needs similar scales."""
    price = codes["price"] / 100
    return codes.with_columns(price) if hasattr(codes, "with_columns") else codes.assign(price=price)


def main() -> None:
    """Print both scores of both schemes."""
    compare_schemes(__doc__.splitlines()[0], scores)


if __name__ == "__main__":
    main()
