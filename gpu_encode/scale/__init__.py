"""Guest: rows that no single process holds at once: parts, files, Dask, Spark, Ray."""
