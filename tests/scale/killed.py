"""Saves that are killed before each of their steps, and in the midst of each."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import wraps
from io import BytesIO
from itertools import count
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
KILLED = 9
OUTCOMES = ["old", "refused", "new"]


def end(status=KILLED):
    """End this process and all that it has started, at once."""
    for child in psutil.Process().children(recursive=True):
        child.kill()
    os._exit(status)


def files_in(folder):
    """Give all that is in a folder, and when it was last written; None if something goes away meanwhile."""
    try:
        return {path: path.stat().st_mtime_ns for path in Path(folder).rglob("*")}
    except FileNotFoundError:
        return None


def end_once_changed(folder, before):
    """End this process as soon as a folder is not what it was."""
    while files_in(folder) == before:
        pass
    end()


def end_in_file(write, table, where, **named):
    """Write half of a file, and end."""
    assert named.get("filesystem") is None
    whole = BytesIO()
    write(table, whole)
    Path(where).write_bytes(whole.getvalue()[: whole.tell() // 2])
    end()


def end_in_removal(_, folder, **__):
    """Remove one file of a folder, and end."""
    for path in [path for path in Path(folder).rglob("*") if path.is_file()][:1]:
        path.unlink()
    end()


# Steps of this process that would be over before a change of the folder is seen.
FAST = {"write_table": end_in_file, "rmtree": end_in_removal}


def die(folder, point, *steps):
    """Let this process end at a point of a save.

    Parameters
    ----------
    folder : str
    point : int
        Step `n` begins at point ``2 n``.  Point ``2 n + 1`` is in the midst of step `n`: half of a file is written, one
        file is removed, or what other processes do has changed the folder.  A step that cannot be halved has ended.
    steps : (object, str)
        The functions whose calls are the steps of a save.
    """
    numbers = count()

    def watched(function, name):
        @wraps(function)
        def step(*given, **named):
            number = next(numbers)
            if point == 2 * number:
                end()
            midst = point == 2 * number + 1
            if midst and name in FAST:
                FAST[name](function, *given, **named)
            if midst:
                threading.Thread(target=end_once_changed, args=(folder, files_in(folder)), daemon=True).start()
            result = function(*given, **named)
            if midst:
                end()
            return result

        return step

    for owner, name in steps:
        setattr(owner, name, watched(getattr(owner, name), name))


def ended_whole(script, folder, point):
    """Run a script that dies at a point of a save; tell whether it had no such point."""
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ge-", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        settings = {"PYTHONPATH": str(ROOT), "GPU_ENCODE_COMPILE": "never", "RAY_USAGE_STATS_ENABLED": "0"}
        settings |= {"TMPDIR": scratch, "SPARK_LOCAL_DIRS": scratch, "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder), str(point)],
            cwd=ROOT,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode in (0, KILLED), done.stderr[-4000:]
    return not done.returncode


def outcome_of(saved, encoder, codes_of, known):
    """Tell which encoder a folder holds, or that it is refused, by `load` and by another save."""
    try:
        return known[tuple(codes_of(saved))]
    except FileNotFoundError as error:
        refusal = str(error)
    assert "ended before it was done" in refusal
    # Once all is removed, there is nothing that a save could be mixed with.
    if any(saved.iterdir()):
        with pytest.raises(FileExistsError):
            encoder.save(str(saved))
    return "refused"


def check_killed_saves(script, saved, encoder, codes_of, old, new):
    """Save over an older encoder, and end each save at another point: a folder is the old one, refused, or the new one.

    Parameters
    ----------
    script : str
        Python that saves over ``sys.argv[1]``, after a call of `die` with point ``int(sys.argv[2])``.  It calls
        ``end(0)`` last: what an engine removes when it stops is no step of a save.
    saved : Path
        The folder with the older encoder.
    encoder : DistributedEncoder
        Another fitted one.
    codes_of : callable
        Loads a folder, and gives the codes of some rows.
    old, new : lists
        The codes of the older encoder and of the one that is saved over it.
    """
    whole, outcomes = saved.with_name("whole"), []
    shutil.copytree(saved, whole)
    for point in count():
        shutil.rmtree(saved)
        shutil.copytree(whole, saved)
        if ended_whole(script, saved, point):
            break
        outcomes.append(outcome_of(saved, encoder, codes_of, {tuple(old): "old", tuple(new): "new"}))
    assert outcomes == sorted(outcomes, key=OUTCOMES.index)
    assert outcomes[0] == "old"
    assert {*outcomes[2:-1:2]} == {"refused"}
    assert len(outcomes) >= 6
    assert codes_of(saved) == new
