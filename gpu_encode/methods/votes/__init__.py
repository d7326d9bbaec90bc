"""Encodings as votes: the exact area under the ROC curve, models that let columns vote, and blends of predictions."""
