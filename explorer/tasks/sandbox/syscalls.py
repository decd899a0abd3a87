"""The system calls of a sealed process, as a seccomp filter: it may compute, read its program from standard
input, write its answer to standard output, and end. Opening a file fails; any other call ends the process at
once.

libseccomp, through pyseccomp (a binding in pure Python), knows the numbers of the calls on every processor.
The filter is made here and passed on as bytes, so that the sealed process needs no library for it.
"""

import errno
import os
import sys
from functools import cache

from explorer.tasks.sandbox.allowed import words

PROT_EXEC = 4
FREE = words("""
    brk munmap mremap madvise futex clock_gettime clock_getres sched_yield getrandom restart_syscall
    rt_sigreturn rt_sigprocmask sigaltstack exit exit_group
""")


@cache
def seccomp_filter() -> bytes | None:
    """The filter in the kernel's binary form; None without libseccomp."""
    if sys.platform != "linux":
        return None
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError, OSError, AttributeError):  # no pyseccomp, or no libseccomp
        return None
    walls = seccomp.SyscallFilter(seccomp.KILL_PROCESS)
    walls.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    for name in sorted(FREE):
        walls.add_rule(seccomp.ALLOW, name)
    walls.add_rule(seccomp.ALLOW, "read", seccomp.Arg(0, seccomp.EQ, 0))
    walls.add_rule(seccomp.ALLOW, "write", seccomp.Arg(0, seccomp.EQ, 1))
    walls.add_rule(seccomp.ALLOW, "mmap", seccomp.Arg(2, seccomp.MASKED_EQ, PROT_EXEC, 0))  # no new code
    walls.add_rule(
        seccomp.ERRNO(errno.EACCES), "openat"
    )  # Python tries to read the source line of a SyntaxError
    with os.fdopen(os.memfd_create("filter"), "w+b") as file:
        walls.export_bpf(file)
        file.seek(0)
        return file.read()
