"""D'yakonov's comparison of ways to encode categorical columns, on any table: every method, chosen on training rows."""
