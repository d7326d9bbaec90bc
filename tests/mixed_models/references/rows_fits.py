"""Fits of rows by statsmodels: python rows_fits.py FOLDER, after sums.py; writes statsmodels.json beside this file."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from statsmodels.regression.mixed_linear_model import MixedLM

NAMES = ("salaries_department", "salaries_position", "used_cars_model", "diamonds_clarity")


def main(folder: Path) -> None:
    """Fit each by restricted maximum likelihood, to a gradient of 1e-10."""
    found = {}
    for name in NAMES:
        rows = pd.read_csv(folder / f"rows_{name}.csv")
        fit = MixedLM(rows["y"], np.ones(len(rows)), groups=rows["category"]).fit(reml=True, gtol=1e-10)
        b = float(fit.fe_params.iloc[0])
        codes = [b + float(np.ravel(fit.random_effects[each])[0]) for each in sorted(rows["category"].unique())]
        between = float(np.ravel(fit.cov_re)[0])
        found[name] = {"intercept": b, "between": between, "within": float(fit.scale), "codes": codes}
    Path(__file__).with_name("statsmodels.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
