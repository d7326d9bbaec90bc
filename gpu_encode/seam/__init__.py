"""The seam between the library and its backends: the operations of a backend, and the choice of backend and device."""
