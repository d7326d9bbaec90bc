"""Guest: a fitted encoder elsewhere: exports, and other libraries' encoders served by ours."""
