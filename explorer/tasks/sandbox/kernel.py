"""The kernel's sandbox for the current process. It is set up before a program is read, and nothing in the
process can undo it afterwards, not even machine code.

Each layer is set up if the system has it, and `seal` returns the active ones. seccomp alone is enough: under
it a process can only compute. Landlock and the namespaces block files and network as well, in case seccomp
has a hole. Runs in the fresh process before it is sealed.

Landlock is used through its three system calls, which are the same on every processor and documented in
landlock(7): no Python library for it is past its first releases, and one would add little.
"""

import ctypes
import os
import sys

if os.name == "posix":  # on other systems this file is only imported
    import resource

NOBODY = 65534
SECONDS, MEGABYTES = 1, 256  # limits of CPU time and of memory
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 8, 22, 38
CAP_SYS_CHROOT = 18
SIGKILL, MODE_FILTER = 9, 2
CAPABILITIES_VERSION = 0x20080522
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x00020000, 0x02000000, 0x04000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET = 0x08000000, 0x10000000, 0x40000000
NAMESPACES = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWCGROUP
CREATE_RULESET, RESTRICT_SELF = 444, 446
ASK_VERSION = 1
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # version of Landlock -> number of its file access rights
MAX_FILE_RIGHTS = 16
TCP = 0b11  # bind and connect, from version 4 on
SCOPES = 0b11  # abstract sockets and signals stay inside, from version 6 on
M_ARENA_MAX = -8


class Ruleset(ctypes.Structure):
    """struct landlock_ruleset_attr: the rights that are removed, as no rule grants any of them."""

    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class Filter(ctypes.Structure):
    """struct sock_fprog: the number of instructions, and a pointer to them."""

    _fields_ = [("count", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def seal(instructions: bytes) -> list[str]:
    """Seals this process for good; returns the active layers among user, namespaces, root, landlock, seccomp.

    instructions: the seccomp filter, empty for none. Limits on time, memory, files and processes always
    apply.
    """
    os.closerange(2, 4096)
    if sys.platform != "linux":
        held = ["user"] if became_nobody() else []
        bound()
        return held
    libc = ctypes.CDLL(None, use_errno=True)
    nowhere = in_a_folder_that_is_gone()
    libc.prctl(PR_SET_KEEPCAPS, *map(ctypes.c_ulong, (1, 0, 0, 0)))  # for chroot, after the user has changed
    held = ["user"] if became_nobody() else []
    one_heap(libc)
    if libc.unshare(NAMESPACES) == 0:
        held.append("namespaces")
    if nowhere and chrooted(libc):
        held.append("root")
    without_rights(libc)
    private(libc)
    if landlocked(libc):
        held.append("landlock")
    bound()
    if instructions and filtered(libc, instructions):
        held.append("seccomp")
    return held


def became_nobody() -> bool:
    """Drops root privileges; returns whether there were any."""
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    except OSError:  # root in a container that may not change users
        return False
    return True


def one_heap(libc: ctypes.CDLL) -> None:
    """Limits glibc to one heap: out of memory, it would otherwise look for processors in /sys to decide on a
    second one.
    """
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_ARENA_MAX, 1)


def in_a_folder_that_is_gone() -> bool:
    """Makes an empty folder the current one and removes it; returns whether that worked."""
    folder = f"/tmp/nowhere-{os.urandom(8).hex()}"
    try:
        os.mkdir(folder)
        os.chmod(folder, 0o555)
        os.chdir(folder)
        os.rmdir(folder)
    except OSError:
        return False
    return True


def chrooted(libc: ctypes.CDLL) -> bool:
    """Makes the current folder, which is gone, the root: no path leads anywhere, so that nothing can be asked
    about files either, which Landlock allows. Root may do so, and whoever has a user namespace of his own.
    """
    rights(libc, 1 << CAP_SYS_CHROOT)  # fails, with no harm, where there is no such right
    return libc.chroot(b".") == 0


def without_rights(libc: ctypes.CDLL) -> None:
    """Gives up all rights, of root and over namespaces of its own; ends the process if that fails."""
    if not rights(libc, 0):
        os._exit(1)


def rights(libc: ctypes.CDLL, bits: int) -> bool:
    """Keeps only these capabilities; returns whether the kernel accepted that."""
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    words = (ctypes.c_uint32 * 6)(bits, bits)  # effective, permitted and inheritable, the low words first
    return libc.capset(header, words) == 0


def private(libc: ctypes.CDLL) -> None:
    """Allows no gain of rights by child processes and no inspection, and ends with the process that started
    it.
    """
    libc.prctl(PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0)))
    libc.prctl(PR_SET_DUMPABLE, *map(ctypes.c_ulong, (0, 0, 0, 0)))
    libc.prctl(PR_SET_PDEATHSIG, *map(ctypes.c_ulong, (SIGKILL, 0, 0, 0)))


def bound() -> None:
    """Limits time, memory, files and processes; open files stay open."""
    bounds = {
        resource.RLIMIT_CPU: SECONDS,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_NOFILE: 0,
    }
    if sys.platform == "linux":
        bounds[resource.RLIMIT_AS] = MEGABYTES << 20
        bounds[resource.RLIMIT_MEMLOCK] = bounds[resource.RLIMIT_MSGQUEUE] = 0
    for what, limit in bounds.items():
        resource.setrlimit(what, (limit, limit))


def landlocked(libc: ctypes.CDLL) -> bool:
    """Removes access to all files, and to TCP and signals if this kernel supports that; returns whether it
    worked at all.
    """
    version = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION))
    if version < 1:
        return False
    files = (1 << FILE_RIGHTS.get(version, MAX_FILE_RIGHTS)) - 1
    rules = Ruleset(files, TCP if version >= 4 else 0, SCOPES if version >= 6 else 0)
    fields = 3 if version >= 6 else 2 if version >= 4 else 1
    size = ctypes.c_size_t(8 * fields)
    made = libc.syscall(CREATE_RULESET, ctypes.byref(rules), size, ctypes.c_uint32(0))
    if made < 0:
        return False
    holds = libc.syscall(RESTRICT_SELF, made, ctypes.c_uint32(0)) == 0
    os.close(made)
    return holds


def filtered(libc: ctypes.CDLL, instructions: bytes) -> bool:
    """Installs the seccomp filter: the kernel ends this process at any call that it does not allow."""
    program = Filter(len(instructions) // 8, instructions)
    return libc.prctl(PR_SET_SECCOMP, ctypes.c_ulong(MODE_FILTER), ctypes.byref(program)) == 0
