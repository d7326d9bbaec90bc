"""Boosting of oblivious trees with gradients that never see a row's own target: a small, exact reference, not fast."""
