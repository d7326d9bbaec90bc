"""Messages of errors, by topic."""
