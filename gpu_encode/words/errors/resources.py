"""Errors for too little memory, and for full disks."""

import errno

FULL = (errno.ENOSPC, errno.EDQUOT)


def device_too_small(wanted: int, free: int, total: int) -> MemoryError:
    """Error for an allocation that the device has no room for."""
    more = f"{wanted:,} bytes more are needed" if wanted else "More memory is needed"
    return MemoryError(
        f"{more} on the GPU, which has {total:,} bytes, {free:,} of them free (bytes in a pool are not). Encode "
        "fewer columns at a time, learn from pieces with partial_fit and transform piece by piece, or choose "
        "device='cpu', which gives the same codes."
    )


class DiskFullError(OSError):
    """Error for a full disk, or a user's full quota; it names the file and the disk."""
