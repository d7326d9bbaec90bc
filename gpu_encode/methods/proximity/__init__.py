"""Votes of training rows for a row, each weighted by the subsets of features in which the two rows agree."""
