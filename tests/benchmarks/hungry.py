"""A process for the tests of `benchmarks.billion.process`: it takes memory, gives it back, and answers, or dies."""

import sys
import time

from benchmarks.billion.process import answer, question

if __name__ == "__main__":
    asked = question()
    if "status" in asked:
        sys.exit(asked["status"])
    held = bytearray(b"x") * asked["bytes"]
    size = len(held)
    del held
    # Its memory is looked at once a second.
    time.sleep(2)
    answer({"had": size})
