"""What encoders read off the sums of a category, other than a shrunk mean of the target."""
