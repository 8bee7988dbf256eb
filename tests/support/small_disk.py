"""A real file system that is small, or read-only, for the tests of full and closed disks."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted file system of a few hundred kilobytes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Use up all room."""
        with (self.path / "filler.bin").open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(b"\0" * 4096)
            except OSError:
                return

    def make_room(self) -> None:
        """Give the room back."""
        (self.path / "filler.bin").unlink()

    def make_read_only(self) -> None:
        """Let nothing be written any more."""
        _mount("-o", "remount,ro", str(self.path))

    def make_writable(self) -> None:
        """Let it be written again."""
        _mount("-o", "remount,rw", str(self.path))


@contextmanager
def small_disk(path: Path, *, kib: int = 512) -> Generator[SmallDisk]:
    """Mount a small file system; skips the test where that is not possible."""
    if os.name != "posix" or shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs a privilege")
    path.mkdir(parents=True, exist_ok=True)
    try:
        _mount("-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(path))
    except subprocess.CalledProcessError:
        pytest.skip("mounting a small file system is not permitted here")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True, capture_output=True)


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
