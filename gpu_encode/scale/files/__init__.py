"""Files larger than memory: rows are read, summed and encoded in chunks, with the bits of one table.

`encoding.py` and `new_rows.py` have the functions that `gpu_encode` gives.  `files.py` and `source.py` are what is
read, `streams.py` queries that are read once, `stores.py` what lies at URLs, `writing.py` and `staging.py` what is
written, `formats.py` how, `run.py` the passes between them, `memory.py` the size of chunks and the room for categories,
`orders.py` what ordered schemes need besides.  Categories that have no room are in `disk_tables.py`; how tables are
made and looked up that nobody holds whole, `shuffle.py` and `look_up.py` say to files and engines.
Nothing is imported here, so that the command line stays quick to start.
"""
