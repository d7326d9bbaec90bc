"""What the library says, and the words of its signatures: types of parameters, messages, warnings, progress."""
