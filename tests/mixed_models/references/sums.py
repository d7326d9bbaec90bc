"""Sums per category of real data, for reference fits: python sums.py DATA_FOLDER OUT_FOLDER."""

import sys
from fractions import Fraction
from pathlib import Path

import pandas as pd

GAUSSIAN = {
    "salaries_department": ("employee_salaries", "department", "current_annual_salary"),
    "salaries_position": ("employee_salaries", "employee_position_title", "current_annual_salary"),
    "used_cars_model": ("used_cars_uk", "model", "price"),
    "diamonds_clarity": ("diamonds", "clarity", "price"),
}
BINOMIAL = {
    "adult_occupation": ("adult", "occupation", "income"),
    "adult_native_country": ("adult", "native_country", "income"),
    "hotel_country": ("hotel_bookings", "country", "is_canceled"),
    "hotel_company": ("hotel_bookings", "company", "is_canceled"),
}


def main(data: Path, out: Path) -> None:
    """Write one file of rows and one of sums for each."""
    for name, (file, key, target) in {**GAUSSIAN, **BINOMIAL}.items():
        frame = pd.read_parquet(data / f"{file}.parquet", columns=[key, target]).dropna()
        y = frame[target]
        if y.dtype.kind not in "if":
            y = (y.astype(str).str.strip().str.startswith(">50K")).astype(int)
        rows = pd.DataFrame({"category": frame[key].astype(str).factorize(sort=True)[0], "y": y.to_numpy()})
        rows.to_csv(out / f"rows_{name}.csv", index=False)
        sums = []
        for category, own in rows.groupby("category")["y"]:
            exact = [Fraction(each) for each in own.tolist()]
            mean = sum(exact) / len(exact)
            sums.append((category, len(exact), float(mean), float(sum((each - mean) ** 2 for each in exact))))
        pd.DataFrame(sums, columns=["category", "n", "mean", "within"]).to_csv(out / f"sums_{name}.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
