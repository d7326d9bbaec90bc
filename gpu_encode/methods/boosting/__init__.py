"""Boosting of oblivious trees whose gradients see no row's own target: a reference, small and exact, not quick."""
