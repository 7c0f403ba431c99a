"""The seccomp filter of the sandbox: no second process or thread, no network, no memory that no limit counts.

Without it a fork bomb of root is stopped by no rlimit: the kernel does not apply RLIMIT_NPROC to uid 0.
"""

from __future__ import annotations

import errno
import struct

# Numbers of <asm/unistd.h>, in one order: clone, clone3, unshare, setns, ptrace, process_vm_writev, mount,
# socket, socketpair, memfd_create, memfd_secret, shmget, mq_open, add_key, keyctl, io_uring_setup, bpf,
# userfaultfd, perf_event_open; x86_64 has fork and vfork too.
_DENIED = {
    "x86_64": (
        56,
        435,
        272,
        308,
        101,
        311,
        165,
        41,
        53,
        319,
        447,
        29,
        240,
        248,
        250,
        425,
        321,
        323,
        298,
        57,
        58,
    ),
    "aarch64": (220, 435, 97, 268, 117, 271, 40, 198, 199, 279, 447, 194, 180, 217, 219, 425, 280, 282, 241),
}
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_* of <linux/audit.h>

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF: ld [k]; jeq; jge; ret
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
_NUMBER, _ARCH_AT = 0, 4  # offsets in struct seccomp_data
_X32 = 0x40000000  # the second table of x86_64, by which the numbers above could be gone around


def program(machine: str) -> bytes:
    """The BPF program for `--seccomp` of bubblewrap. Raises KeyError for another architecture."""
    denied = _DENIED[machine]
    lines = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, _ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, len(denied) + 1, 0, _X32),
    ]
    lines += [(_EQUAL, len(denied) - place, 0, number) for place, number in enumerate(denied)]
    lines += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
