"""Between the library and its backends: what a backend must do, which one serves a call, and where."""
