"""The C library's allocator, told to keep the large blocks that every update needs again."""

import ctypes
import sys

# From malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4


def keep_large_blocks() -> bool:
    """Tell glibc not to hand blocks back to the kernel after each update; whether it was told.

    Blocks above 32 MB would be mapped and unmapped each time whatever the threshold, so mapping is
    switched off altogether.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    options = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26))
    answers = [mallopt(option, value) for option, value in options]
    return all(answer == 1 for answer in answers)
