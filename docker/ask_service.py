"""Ask the web service at the given address for its health and for the encodings of one row."""

import json
import sys
import time
import urllib.request


def answer(url: str, data: bytes | None = None) -> str:
    """Give the text that a URL answers; to some data, if these are given."""
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return str(response.read().decode())


def wait_for(url: str, seconds: float) -> str:
    """Give the first answer of a service that is about to start."""
    end = time.monotonic() + seconds
    while True:
        try:
            return answer(url)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def main(address: str) -> None:
    """Compare the answers with what four orders, 3 of them sold, say about two shops."""
    health = json.loads(wait_for(f"{address}/health", seconds=120))
    (row,) = json.loads(answer(f"{address}/encode", b'[{"shop": "a"}]'))
    expected = (2 + 2 * 0.75) / (2 + 2)
    if health["status"] != "ok" or row["shop"] != expected:
        raise SystemExit(f"The service answered {health} and {row}; the encoding of a is {expected}.")
    sys.stdout.write(f"the service answers: {row}\n")


if __name__ == "__main__":
    main(sys.argv[1])
