"""An indexing process that is killed at any moment leaves whole documents, and the next start heals."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.indexed_project import DEADLINE_S, Project, wait_until
from tests.support.stdio_client import SOURCE

REPOSITORY = Path(__file__).resolve().parents[2]
INDEXING = """
import sys
from pathlib import Path
from tests.support.indexed_project import Project
project = Project(Path(sys.argv[1]), Path(sys.argv[2]), workers=2)
project.indexer.start()
project.indexer.wait_first_run(60)
if sys.argv[3] == "force":
    project.reindex(force=True)
print("done", flush=True)
sys.stdin.read()
"""


def change(root: Path, chance: random.Random, number: int) -> None:
    """Edit, rename, delete and make some files."""
    for path in chance.sample(sorted(root.rglob("*.md")), 30):
        what = chance.random()
        if what < 0.6:
            path.write_text(path.read_text() + f"\nEdit {number}.\n")
        elif what < 0.8:
            path.rename(path.with_name(f"{path.stem}-{number}.md"))
        else:
            path.unlink()
            path.with_name(f"new-{number}-{path.name}").write_text(f"# New {number}\n\nfresh text\n")


def kill_while_indexing(root: Path, store: Path, chance: random.Random) -> None:
    force = "force" if chance.random() < 0.4 else "changed"
    process = subprocess.Popen(
        [sys.executable, "-c", INDEXING, str(root), str(store), force],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(SOURCE)])},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    time.sleep(chance.uniform(0.1, 2.0))
    process.kill()
    process.communicate(timeout=DEADLINE_S)


def check_after_kill(root: Path, store: Path) -> None:
    left = Project(root, store)
    if left.home.manifest() is not None:
        left.check_consistent()
    left.database.close()


def check_heals(root: Path, store: Path) -> None:
    project = Project(root, store, workers=2).start()
    try:
        wait_until(lambda: project.indexer.snapshot().state == "ready")
        project.check_consistent()
        assert project.paths() == sorted(str(path.relative_to(root)) for path in root.rglob("*.md"))
        assert not list(store.glob("*.damaged-*"))
    finally:
        project.indexer.stop()


def run_kills(tmp_path: Path, *, kills: int, seed: int) -> None:
    root, store = tmp_path / "root", tmp_path / "store"
    maker = Project(root, store)
    for number in range(300):
        maker.put(f"d{number % 9}/n{number}.md", f"# Note {number}\n\n" + f"Some text about {number}.\n\n" * 60)
    chance = random.Random(seed)
    for number in range(kills):
        change(root, chance, number)
        kill_while_indexing(root, store, chance)
        check_after_kill(root, store)
    check_heals(root, store)


def test_kill__a_few_times(tmp_path: Path) -> None:
    """After a few kills everything is whole and the next start brings the index in line."""
    run_kills(tmp_path, kills=4, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_kill__many_times(tmp_path: Path) -> None:
    """As above, two hundred times."""
    run_kills(tmp_path, kills=200, seed=2)
