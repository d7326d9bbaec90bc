"""Votes of training rows, weighted by the subsets of features in which they agree with the row to be predicted."""
