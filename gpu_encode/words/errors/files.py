"""Files that cannot be written."""

import errno
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFullError(OSError):
    """Error for a disk without space left, or a person without any; it says which file, and which disk."""


def disk_is_full(path: Path, number: int | None) -> DiskFullError:
    """Error for a file that a disk has no room for."""
    folders = (path.parent, *path.parent.parents)
    disk = next((folder for folder in folders if folder.is_mount()), folders[-1])
    return DiskFullError(
        number,
        f"the disk is full (no space left on device, which is {str(disk)!r}): {str(path)!r} was not written, and is as "
        "it was before. Free some space, or write elsewhere",
    )
