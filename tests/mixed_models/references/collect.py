"""Put sums and fits into the file that the tests read: python collect.py FOLDER, after sums.py and fits.R."""

import csv
import json
import sys
from pathlib import Path


def read(path: Path) -> list[dict[str, float]]:
    """Read a table of numbers whose first column may be a name."""
    with path.open() as file:
        return [
            {key: value if key == "name" else float(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def main(folder: Path) -> None:
    """Write lme4.json beside this file."""
    found: dict[str, dict] = {}
    for fit in read(folder / "fits.csv"):
        name, points = fit["name"], int(fit["points"])
        if points == 7:
            continue
        sums = read(folder / f"sums_{name}.csv")
        codes = {row["category"]: float(f"{row['code']:.12g}") for row in read(folder / f"codes_{name}_{points}.csv")}
        columns = ["n", "mean"] + (["within"] if fit["within"] else [])
        table = found.setdefault(name, {key: [row[key] for row in sums] for key in columns} | {"fits": []})
        table["n"] = [int(each) for each in table["n"]]
        numbers = {key: fit[key] for key in ("intercept", "between", "within")}
        table["fits"].append({"points": points, **numbers, "codes": [codes[row["category"]] for row in sums]})
    Path(__file__).with_name("lme4.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
