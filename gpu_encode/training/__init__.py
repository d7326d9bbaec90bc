"""Training encodings: sums become encodings of rows, by the plan of a scheme."""
