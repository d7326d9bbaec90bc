"""A billion rows through `encode_dataset`: made, encoded, checked and timed, in bounded memory.

    python -m studies.billion [--rows 1e9] [--folder DIR] [--memory-limit 1.5GiB] [--keep]
                                 [--only generate,encode,verify,bare] [--out FOLDER]

Rows have three keys of Zipf's law (an int64 of a million categories, text of a hundred thousand, an int16 of a hundred)
and a target of 0 and 1.  Each row group is a function of the seed and its number, so nothing is ever held whole.  The
rows are encoded with five folds by a process of its own, whose peak of memory counts; every row of a sample of
categories is then compared, bit for bit, with encodings from a definition that shares no code with the library; and the
same files are read and written by pyarrow alone.  billion.json and billion.md are on disk after every step, and a
folder with results of the same rows is gone on with.  The exit status is 1 if anything was wrong.
"""
