"""An editor that saves Markdown in every way that editors know; also walks a tree the way it sees it."""

import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path


def edit(root: Path, seed: int, seconds: float) -> None:
    """Save documents in every way, until the time is up; a file that is gone by then is left alone."""
    rng = random.Random(seed * 100 + 70)
    until = time.monotonic() + seconds
    ways = [_truncate, _rename_over, _vim_copy, _vim_rename, _delete_create, _touches, _append, _folder, _case]
    counts: Counter[str] = Counter()
    while time.monotonic() < until:
        paths = documents(root)
        for _ in range(40):
            way = rng.choice(ways)
            try:
                way(root, root / rng.choice(paths), rng)
                counts[way.__name__] += 1
            except (FileNotFoundError, FileExistsError, NotADirectoryError):
                counts["gone"] += 1
            time.sleep(rng.choice([0, 0.005, 0.02, 0.1]))
    print("editor:", dict(counts), flush=True)


def _changed(path: Path, rng: random.Random) -> bytes:
    return path.read_bytes() + f"\n\nAn editor saved {rng.random()}.\n".encode()


def _truncate(_root: Path, path: Path, rng: random.Random) -> None:
    data = _changed(path, rng)
    with path.open("r+b", buffering=0) as file:
        file.truncate(0)
        half = len(data) // 2
        file.write(data[:half])
        time.sleep(rng.choice([0, 0.01, 0.3]))
        file.write(data[half:])


def _rename_over(_root: Path, path: Path, rng: random.Random) -> None:
    data = _changed(path, rng)
    temporary = path.with_name(f".{path.name}.{rng.randrange(10**6)}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def _vim_copy(_root: Path, path: Path, rng: random.Random) -> None:
    """``backupcopy=yes``: copy the old text away, write in place, drop the copy."""
    data = _changed(path, rng)
    backup = path.with_name(path.name + "~")
    shutil.copy2(path, backup)
    path.write_bytes(data)
    backup.unlink()


def _vim_rename(_root: Path, path: Path, rng: random.Random) -> None:
    """``backupcopy=no``, and ``auto`` with its probing file: move the old file away, write a new one, drop the old."""
    data = _changed(path, rng)
    if rng.random() < 0.5:
        probe = path.with_name("4913")
        probe.touch()
        probe.unlink()
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    path.write_bytes(data)
    backup.unlink()


def _delete_create(_root: Path, path: Path, rng: random.Random) -> None:
    data = _changed(path, rng)
    path.unlink()
    time.sleep(rng.choice([0, 0.05, 0.4]))
    path.write_bytes(data)


def _touches(_root: Path, path: Path, rng: random.Random) -> None:
    for _ in range(rng.randrange(5, 60)):
        os.utime(path)


def _append(_root: Path, path: Path, rng: random.Random) -> None:
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        for _ in range(rng.randrange(1, 6)):
            file.write(f"\nA line appended {rng.random()}.\n".encode())
            file.flush()


def _folder(root: Path, path: Path, rng: random.Random) -> None:
    """Move a folder away or, at times, back over nothing."""
    folder = path.parent
    if folder == root or len(list(folder.rglob("*.md"))) > 300:
        return
    away = folder.with_name(f"{folder.name}-away{rng.randrange(10**4)}")
    folder.rename(away)
    time.sleep(rng.choice([0, 0.05, 0.5]))
    if rng.random() < 0.8 and not folder.exists():
        away.rename(folder)
    else:
        target = root / "away" / str(rng.randrange(50))
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(exist_ok=True)
        away.rename(target)


def _case(_root: Path, path: Path, rng: random.Random) -> None:
    other = path.with_name(path.stem.swapcase() + path.suffix)
    if not other.exists():
        path.rename(other)


def documents(root: Path) -> list[str]:
    """The documents of a tree, those in hidden places left out."""
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(folder).relative_to(root)
        found += [(inside / name).as_posix() for name in sorted(names) if name.endswith(".md") and name[0] != "."]
    return found
