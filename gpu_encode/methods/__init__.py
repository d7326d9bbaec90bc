"""Guest: the papers' other methods, each beside the target encoder."""
