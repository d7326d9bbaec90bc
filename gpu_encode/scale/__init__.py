"""Guest: rows that no single process can hold at once, as parts, files, or data of Dask, Spark or Ray."""
