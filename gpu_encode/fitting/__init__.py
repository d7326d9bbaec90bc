"""One call on training rows, step by step, and the model that it leaves."""
