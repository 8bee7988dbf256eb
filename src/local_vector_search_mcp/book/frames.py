"""Frames: what the server and the process that sets books say to each other, over two pipes.

A frame is a JSON object with any number of byte strings behind it. Both ends are ours and of one version.
"""

import json
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

_LENGTH: Final = struct.Struct(">I")
# No frame of ours is larger; a larger one means that something else wrote to the pipe.
_LARGEST_HEAD: Final = 64 * 1024 * 1024


class BrokenPipe(Exception):
    """The other end is gone, or sent what is no frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: its kind, its values, and the bytes that come with it."""

    kind: str
    values: Mapping[str, Any]
    parts: tuple[bytes, ...] = ()


class FramePipe:
    """Reads frames from one stream and writes them to another; writing is safe from several threads."""

    def __init__(self, source: IO[bytes], target: IO[bytes]) -> None:
        self._source = source
        self._target = target
        self._writing = threading.Lock()

    def send(self, kind: str, values: Mapping[str, Any] | None = None, parts: Sequence[bytes] = ()) -> None:
        """Write one frame.

        Raises:
            BrokenPipe: Nobody reads any more.
        """
        head = json.dumps({"kind": kind, "values": dict(values or {}), "parts": [len(part) for part in parts]}).encode()
        with self._writing:
            try:
                self._target.write(_LENGTH.pack(len(head)))
                self._target.write(head)
                for part in parts:
                    self._target.write(part)
                self._target.flush()
            except (OSError, ValueError) as error:
                raise BrokenPipe("the other end is gone") from error

    def receive(self) -> Frame:
        """Wait for one frame.

        Raises:
            BrokenPipe: The stream ended, or holds what is no frame.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > _LARGEST_HEAD:
            raise BrokenPipe("what came is no frame")
        try:
            head = json.loads(self._exactly(length))
        except ValueError as error:
            raise BrokenPipe("what came is no frame") from error
        parts = tuple(self._exactly(size) for size in head["parts"])
        return Frame(str(head["kind"]), head["values"], parts)

    def _exactly(self, size: int) -> bytes:
        pieces: list[bytes] = []
        missing = size
        while missing:
            try:
                piece = self._source.read(min(missing, 1 << 20))
            except (OSError, ValueError) as error:
                raise BrokenPipe("the other end is gone") from error
            if not piece:
                raise BrokenPipe("the other end is gone")
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)
