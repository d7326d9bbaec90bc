"""A process for the tests of `benchmarks.billion.process`: it takes memory, gives it back, and answers, or dies."""

import sys

from benchmarks.billion.process import answer, question

if __name__ == "__main__":
    asked = question()
    if "status" in asked:
        sys.exit(asked["status"])
    held = bytearray(b"x") * asked["bytes"]
    size = len(held)
    del held
    answer({"had": size})
