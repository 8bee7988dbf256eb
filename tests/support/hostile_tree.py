"""A workspace full of traps, and a place beside it that nobody may read, list or change."""

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from tests.support.pictures import bomb, picture
from tests.support.spec_examples import spec_texts

MARK = "outside-mark-7c41e9"
_LONG_AGO_S = 1_000_000_000

PLAIN = ("a.md", "b.md", "sub/c.md", "sub/deep/d.md", "tables.md", "front.md", "lists.md", "twins.md", "crlf.md")


@dataclass(frozen=True, slots=True)
class HostileTree:
    """The workspace and what stands beside it."""

    root: Path
    outside: Path

    def touched(self) -> list[str]:
        """What has been read, listed, added, removed or changed outside, in words; reading leaves a trace in the times.

        File systems that keep no access times show changes only.
        """
        found: list[str] = []
        for name in (".", "folder", *_OUTSIDE):
            try:
                status = (self.outside / name).stat()
            except OSError as error:
                found.append(f"{name}: {error.strerror}")
                continue
            # The times of a folder change with what is added, removed or listed in it.
            if status.st_mtime_ns != _LONG_AGO_S * 10**9:
                found.append(f"{name}: changed")
            if status.st_atime_ns != _LONG_AGO_S * 10**9:
                found.append(f"{name}: read")
        return found


def build_hostile_tree(base: Path) -> HostileTree:
    """Build the workspace ``base/root`` and its surroundings ``base/outside``."""
    root, outside = base / "root", base / "outside"
    for name, text in _OUTSIDE.items():
        _write(outside / name, text.encode())
    for name, data in _documents().items():
        _write(root / name, data)
    for name, data in _pictures().items():
        _write(root / name, data)
    _write(root / ".git/config", f"[core] {MARK}\n".encode())
    _write(root / "notes.txt", b"plain\n")
    _write(root / "page.html", b"<h1>x</h1>\n")
    _write(root / "data.bin", bytes(range(256)) * 40)
    _links(root, outside)
    for name in (*_OUTSIDE, "folder", "."):
        os.utime(outside / name, (_LONG_AGO_S, _LONG_AGO_S))
    return HostileTree(root, outside)


_OUTSIDE = {
    "secret.md": f"# {MARK}\n\n{MARK} text\n",
    "folder/inner.md": f"# {MARK}\n",
    "secret.png": MARK,
}


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _documents() -> dict[str, bytes]:
    texts = {
        "a.md": "# A\n\nFirst *para*, [b](b.md), ![p](img/p.png) and [[c]].\n\n## A.1\n\ntext #tag\n\n## A.2\n\n- x\n",
        "b.md": "# B\n\n[a](a.md#a1) [gone](gone.md) [[nothing]]\n\n> q\n\n```py\nx = 1\n```\n\n---\n\n$$\nx\n$$\n",
        "sub/c.md": "# C\n\n[up](../a.md) <a href='../b.md'>b</a>\n\n[ref]: ../a.md\n[^1]: note\n",
        "sub/deep/d.md": "Setext\n===\n\nbody\n\n<div>\nhtml\n</div>\n\n    indented\n",
        "tables.md": "# T\n\n| k | v |\n|---|:-:|\n| a | 1 |\n| b | 2 |\n| b | 3 |\n\na | b\n--|--\n1 | 2 | 3\n",
        "front.md": "---\ntitle: F # c\ntags: [x, y/z]\nstatus: draft\ndate: 2026-01-31\nn: 5\n---\n\n# F\n\ntext\n",
        "lists.md": "# L\n\n- a\n  - b\n    - c\n- d\n\n1. one\n2. two\n\n- [ ] task\n- - inner\n",
        "twins.md": "# W\n\nsame\n\nsame\n\n- i\n- i\n\n# W\n\nsame\n",
        "crlf.md": "# R\r\n\r\nline one\r\nline two\r\n\r\n- x\r\n",
        "bad-front.md": "---\na: [\n---\n\ntext\n",
        "empty.md": "",
        "deep.md": ">" * 300 + " x\n\n" + "".join(" " * (2 * n) + "- n\n" for n in range(80)),
        "long-line.md": "word " * 30_000 + "\n\n" + "*a" * 5_000 + "\n\n" + "[" * 3_000 + "\n\n" + "`" * 3_001 + "\n",
        "cjk/中文.md": "# 数据库\n\n向量检索与全文搜索。 emoji 🎉👩‍👩‍👧\n",
        "images.md": "![a](img/p.png) ![b](img/bomb.png) ![c](img/cut.png) ![d](/etc/x) ![e](../outside/secret.png)\n",
        "outward.md": "[o](../outside/secret.md) ![[../outside/secret.md]] [f](file:///etc/passwd) [[out-link]]\n",
        unicodedata.normalize("NFD", "nfd-é.md"): "# NFD\n",
        "nfc-é.md": "# NFC\n",
    }
    documents = {name: text.encode() for name, text in texts.items()}
    documents["bom.md"] = b"\xef\xbb\xbf# Bom\n\ntext\n"
    documents["utf16.md"] = "# x".encode("utf-16")
    documents["invalid.md"] = b"# x\n\n\xff\xfe\n"
    documents["nul.md"] = b"# n\0l\n\n\0\n"
    documents["spec.md"] = "\n\n".join(spec_texts()).encode()
    return documents


def _pictures() -> dict[str, bytes]:
    png = picture("PNG")
    return {
        "img/p.png": png,
        "img/q.jpg": picture("JPEG"),
        "img/r.webp": picture("WEBP"),
        "img/s.gif": picture("GIF"),
        "img/liar.jpg": png,
        "img/cut.png": png[: len(png) // 2],
        "img/text.png": b"no image",
        "img/empty.png": b"",
        "img/bomb.png": bomb(60_000, 60_000),
        "img/thin.png": bomb(9_000, 1),
    }


def _links(root: Path, outside: Path) -> None:
    """Every way out that a file system offers."""
    (root / "out-link.md").symlink_to(outside / "secret.md")
    (root / "out-dir").symlink_to(outside, target_is_directory=True)
    (root / "out-picture.png").symlink_to(outside / "secret.png")
    (root / "in-link.md").symlink_to("a.md")
    (root / "loop").symlink_to("loop")
    (root / "dangling.md").symlink_to(outside / "new.md")
    (root / "self").symlink_to(".", target_is_directory=True)
    os.mkfifo(root / "pipe.md")
    os.mkfifo(root / "img/pipe.png")
    os.link(root / "crlf.md", root / "hard.md")
    (root / "folder.md").mkdir()
