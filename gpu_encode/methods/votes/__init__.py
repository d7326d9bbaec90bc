"""Encodings as votes: the exact area under the ROC curve, models in which columns vote, and blends of predictions."""
