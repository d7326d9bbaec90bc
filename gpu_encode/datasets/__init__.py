"""Files larger than memory: rows are read, summed and encoded in chunks, with the bits of one table.

`encoding.py` has the two functions that `gpu_encode` gives; `source.py`, `files.py` and `reading.py` are what is read,
`writing.py` and `staging.py` what is written, `run.py` the passes between them.
Nothing is imported here, so that the command line stays quick to start.
"""
