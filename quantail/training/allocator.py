"""Configure the C library's allocator to reuse the large memory blocks of each update."""

import ctypes
import sys

# From malloc.h.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4


def keep_large_blocks() -> bool:
    """Stop glibc from returning memory to the kernel after each update; return whether that worked.

    This changes the whole process and cannot be undone, so only the command line and the processes that
    a study starts do it by themselves. From Python, call it once where your program starts.

    glibc maps and unmaps blocks above 32 MB on every use, whatever its threshold, so this disables
    mapping altogether.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    options = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**31 - 1), (_TOP_PAD, 2**26))
    results = [mallopt(option, value) for option, value in options]
    return all(result == 1 for result in results)
