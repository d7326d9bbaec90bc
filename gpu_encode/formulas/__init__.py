"""Sums become encodings: statistics, smoothing, priors and policies."""
