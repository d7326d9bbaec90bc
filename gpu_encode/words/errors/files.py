"""Files that cannot be written."""

import errno

FULL = (errno.ENOSPC, errno.EDQUOT)


class DiskFullError(OSError):
    """Error for a disk without space left, or a person without any; it says which file, and which disk."""
