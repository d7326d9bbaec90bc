"""A billion rows through `encode_dataset`: made, encoded, checked and timed, in bounded memory.

    python -m studies.billion [--rows 1e9] [--folder DIR] [--memory-limit 1.5GiB] [--keep]
                                 [--only generate,encode,verify,bare] [--out FOLDER]

Rows have three keys with Zipf's law (an int64 of a million categories, text of a hundred thousand, an int16 of a
hundred) and a target of 0 and 1.  Each row group is a function of the seed and its number, so the rows are never in
memory together.  A process of its own encodes the rows with five folds, and its peak memory is recorded.  Every row of
a sample of categories is then compared, bit for bit, with a definition that shares no code with the library.  Finally,
pyarrow alone reads and writes the same files.  billion.json and billion.md are on disk after every step.  A run
continues results of the same rows in its folder.  The exit status is 1 if anything was wrong.
"""
