"""The seam between the library and its backends: what a backend must do, which backend serves a call, and where."""
