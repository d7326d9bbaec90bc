"""The words of the library: types of parameters, messages of errors, warnings, progress."""
