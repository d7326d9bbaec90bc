"""What schemes and smoothings are worth on real data, with a linear model and a boosted tree.

    python -m benchmarks.comparison --data FOLDER [--out FOLDER] [--datasets adult,hotel_bookings] [--rows 12000]
                                    [--folds 5] [--schemes kfold-5,ordered] [--smoothings none,auto] [--jobs 2]
    python -m benchmarks.comparison --generated --rows 600    # every line once, on rows made here; measures nothing

FOLDER holds adult.parquet, diabetes130.parquet, employee_salaries.parquet, hotel_bookings.parquet and
nycflights13.parquet, or some of them.  comparison.json, comparison.md and pictures go to the output folder.
"""
