"""Mounts: which file systems do not tell of all changes."""

from pathlib import Path

import pytest

from local_vector_search_mcp.workspace.mounts import is_silent, mount_type, silent_mount

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /proc rw - proc proc rw
40 22 0:40 / /mnt/c rw,noatime - 9p C:\134 rw,dirsync
41 22 0:41 / /home/me/net rw - nfs4 server:/x rw
42 22 0:42 / /home/me/net/deeper rw - ext4 /dev/vdb rw
43 22 0:43 / /with\040space rw - fuse.sshfs me@host: rw
44 22 0:44 / /twice rw - tmpfs tmpfs rw
45 22 0:45 / /twice rw - cifs //nas/x rw
not a line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "ext4"),
        ("/home/me/notes", "ext4"),
        ("/mnt/c", "9p"),
        ("/mnt/c/Users/me/notes", "9p"),
        ("/mnt/cc", "ext4"),
        ("/home/me/net/x", "nfs4"),
        ("/home/me/net/deeper/x", "ext4"),
        ("/with space/x", "fuse.sshfs"),
        ("/twice/x", "cifs"),
    ],
)
def test_mount_type(path: str, kind: str) -> None:
    """The innermost mount that holds the path, and the last of several in one place."""
    assert mount_type(MOUNTS, path) == kind


@pytest.mark.parametrize(
    ("kind", "silent"),
    [("ext4", False), ("overlay", False), ("fuseblk", False), ("tmpfs", False), ("btrfs", False)]
    + [(kind, True) for kind in ("nfs", "cifs", "9p", "fuse.sshfs", "fuse.grpcfuse", "virtiofs", "fakeowner")],
)
def test_is_silent(kind: str, silent: bool) -> None:
    """Network drives, folders shared into a machine, and user-space drivers."""
    assert is_silent(kind) is silent


def test_silent_mount__of_this_machine(tmp_path: Path) -> None:
    """The answer for a real path is None or a name."""
    assert silent_mount(tmp_path) in (None, *("9p", "nfs", "nfs4", "virtiofs", "fuse.sshfs"))
