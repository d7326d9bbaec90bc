"""Files larger than memory: rows are read, summed and encoded in chunks, with the bits of one table.

`encoding.py` has the two functions that `gpu_encode` gives; `files.py` and `source.py` are what is read, `streams.py`
queries that are read once, `stores.py` what lies at URLs, `writing.py` and `staging.py` what is written, `formats.py`
how, `run.py` the passes between them, `memory.py` the size of chunks, `orders.py` what ordered schemes need besides.
Nothing is imported here, so that the command line stays quick to start.
"""
