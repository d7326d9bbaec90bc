"""Files larger than memory: rows are read, measured and encoded in chunks, with the bits of one table.

`encoding.py` and `transforming.py` have the two functions that `gpu_encode` gives; `run.py` is what they share.
Nothing is imported here, so that the command line stays quick to start.
"""
