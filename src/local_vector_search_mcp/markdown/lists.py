"""List items: the own segments of an item that holds nested ones."""

from local_vector_search_mcp.markdown.containers import Block
from local_vector_search_mcp.markdown.source import ByteRange, SourceText


def own_segments(source: SourceText, item: Block, end: int) -> tuple[ByteRange, ...]:
    """The runs of an item's lines that belong to no direct nested item.

    Each is without blank lines at its ends and without its last line ending. Where a nested item starts on
    the item's first line, the first segment is the bytes before its marker without trailing spaces.

    Args:
        item: The item, its nested items known.
        end: The end of its subtree range.
    """
    if not item.items:
        return (ByteRange(item.start, end),)
    segments: list[ByteRange] = []
    line = item.first
    start = item.start
    for nested in item.items:
        if nested.first == item.first:
            marker = source.data[item.start : nested.start].rstrip(b" \t")
            segments.append(ByteRange(item.start, item.start + len(marker)))
        else:
            segments.extend(_run(source, line, nested.first - 1, start))
        line = nested.last + 1
        start = source.line_starts[line]
    segments.extend(_run(source, line, item.last, start))
    return tuple(segments)


def _run(source: SourceText, first: int, last: int, start: int) -> list[ByteRange]:
    lines, starts = source.lines, source.line_starts
    while first <= last and not lines[first].strip(b" \t"):
        first += 1
        start = starts[first]
    while last >= first and not lines[last].strip(b" \t"):
        last -= 1
    if first > last:
        return []
    return [ByteRange(start, starts[last] + len(lines[last]))]
