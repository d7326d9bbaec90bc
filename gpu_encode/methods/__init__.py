"""Guest: other methods from the papers, which can be compared with the target encoder."""
