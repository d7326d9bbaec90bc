"""The seam between the library and its backends: what a backend must do, and which backend and device serve a call."""
