"""Processes that all use the hidden folder of one destination: turns.py DESTINATION PROCESSES SECONDS.

Each process writes its own number in two steps, and publishes it. The script prints as JSON how often each outcome
occurred.
"""

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from gpu_encode.scale.files.staging import Staging
from gpu_encode.scale.files.writing import Destination


def publish_own(destination: Destination, number: int) -> str:
    """Publish a file with this process's number, and return how that ended."""
    try:
        with Staging(destination) as staging:
            staging.begin({}, False, dict)
            path = staging.finished / destination.path.name
            path.write_text(f"{number} ")
            with path.open("a") as file:
                file.write(str(number))
            mixed = path.read_text() != f"{number} {number}"
            staging.publish()
    except FileExistsError as error:
        return "refused" if "another run is writing to this destination" in str(error) else repr(error)
    except OSError as error:
        return type(error).__name__
    return "published a mixture" if mixed else "published"


def main(path: Path, processes: int, seconds: float) -> None:
    """Let processes publish for some seconds, and count their results."""
    destination = Destination(path, False, ".parquet", None)
    children = []
    for number in range(processes):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            ends: Counter[str] = Counter()
            last = time.monotonic() + seconds
            while time.monotonic() < last:
                ends[publish_own(destination, number)] += 1
            os.write(writing, json.dumps(ends).encode())
            os._exit(0)
        os.close(writing)
        children.append((child, reading))
    total: Counter[str] = Counter()
    for child, reading in children:
        total.update(json.loads(os.read(reading, 1 << 16)))
        os.close(reading)
        os.waitpid(child, 0)
    sys.stdout.write(json.dumps(total))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
