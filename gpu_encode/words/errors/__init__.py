"""Messages of errors that several modules share, by topic."""
