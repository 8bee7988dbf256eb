"""Frames between the server and the process that sets books."""

import io
import struct

import pytest

from local_vector_search_mcp.book.frames import BrokenPipe, Frame, FramePipe


def test_frames__what_is_sent_is_received() -> None:
    """Values and parts of any bytes, one frame after the other."""
    wire = io.BytesIO()
    sender = FramePipe(io.BytesIO(), wire)
    frames = [Frame("a", {"x": 1, "y": "ü🦄", "z": None}, (b"", b"\0\xff" * 70_000)), Frame("b", {}, ())]
    for frame in frames:
        sender.send(frame.kind, frame.values, frame.parts)
    wire.seek(0)
    receiver = FramePipe(wire, io.BytesIO())
    assert [receiver.receive(), receiver.receive()] == frames
    with pytest.raises(BrokenPipe):
        receiver.receive()


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0\0\x05ab", b"\xff\xff\xff\xff", struct.pack(">I", 4) + b"nope", struct.pack(">I", 40) + b"{}"],
)
def test_frames__what_is_none_is_a_broken_pipe(data: bytes) -> None:
    """A library that prints to the pipe is noticed, not believed."""
    with pytest.raises(BrokenPipe):
        FramePipe(io.BytesIO(data), io.BytesIO()).receive()


def test_frames__nobody_reads() -> None:
    """Writing to a closed pipe says so."""
    closed = io.BytesIO()
    closed.close()
    with pytest.raises(BrokenPipe):
        FramePipe(io.BytesIO(), closed).send("x")
