"""Files larger than memory: rows are read, summed and encoded in chunks; the bits are those of one table in memory.

`encoding.py` and `new_rows.py` have the public functions.  `files.py` and `source.py` describe what is read,
`streams.py` queries that can be read only once, `stores.py` files at URLs.  `writing.py`, `formats.py` and `staging.py`
write the output.  `run.py` has the passes over rows, `memory.py` chooses the size of chunks and checks that categories
fit, `orders.py` is for ordered schemes.  If categories do not fit into memory, `disk_tables.py` keeps them in files;
`shuffle.py` and `look_up.py` make and read tables that no process holds whole, for files and for engines.
Nothing is imported here, so that the command line starts quickly.
"""
