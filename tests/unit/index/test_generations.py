"""Generations: the pointer, the switch, and that nothing in use or foreign is ever removed."""

from pathlib import Path

import apsw
import pytest

from local_vector_search_mcp.errors import IoFailure
from local_vector_search_mcp.index.generations import (
    current_file,
    new_generation,
    pointer_file,
    remove_unused,
    set_aside,
    switch,
    unfinished,
)
from local_vector_search_mcp.index.schema import create_schema


def make_index(file: Path) -> None:
    connection = apsw.Connection(str(file))
    connection.pragma("journal_mode", "wal")
    create_schema(connection)
    connection.close()


@pytest.fixture
def base(tmp_path: Path) -> Path:
    file = tmp_path / "index.db"
    make_index(file)
    return file


def test_current_file__is_the_base_at_first(base: Path) -> None:
    """Without a pointer, or with one that names nothing of ours, the base is current."""
    assert current_file(base) == base
    for text in ("", "index.db.7\n", "other.db\n", "../index.db.2\n", "index.db.01\n", "\xff", "x" * 999):
        pointer_file(base).write_text(text, encoding="latin-1")
        assert current_file(base) == base


def test_switch__makes_the_next_one_current(base: Path) -> None:
    """After the switch the new file is current and the old one is removed once nobody has it open."""
    second = new_generation(base)
    assert second.name == "index.db.2"
    make_index(second)
    assert unfinished(base) == second
    switch(base, second)
    assert pointer_file(base).read_text() == "index.db.2\n"
    assert current_file(base) == second
    assert unfinished(base) is None
    assert remove_unused(base) == 0
    assert not base.exists()
    third = new_generation(base)
    assert third.name == "index.db.3"


def test_remove_unused__leaves_what_is_open(base: Path) -> None:
    """An old generation that somebody reads stays until it is closed; an unfinished new one stays too."""
    make_index(new_generation(base))
    switch(base, base.with_name("index.db.2"))
    make_index(new_generation(base))
    reader = apsw.Connection(str(base))
    reader.execute("SELECT count(*) FROM documents").fetchall()
    assert remove_unused(base) == 1
    assert base.exists()
    reader.close()
    assert remove_unused(base) == 0
    assert sorted(file.name for file in base.parent.iterdir()) == ["index.db.2", "index.db.3", "index.db.current"]


def test_remove_unused__never_touches_what_is_not_ours(base: Path) -> None:
    """Another program's database under a name of ours, and files of other names, are left alone."""
    base.unlink()
    foreign = apsw.Connection(str(base))
    foreign.execute("CREATE TABLE mine (x)")
    foreign.close()
    make_index(new_generation(base))
    switch(base, base.with_name("index.db.2"))
    (base.parent / "index.db.bak").write_text("x")
    (base.parent / "history.db").write_text("x")
    assert remove_unused(base) == 1
    assert base.exists()
    assert (base.parent / "index.db.bak").exists()


def test_switch__that_fails_changes_nothing(base: Path) -> None:
    """Where the pointer cannot be written, the old generation goes on."""
    pointer_file(base).mkdir()
    with pytest.raises(IoFailure):
        switch(base, base.with_name("index.db.2"))
    assert current_file(base) == base
    assert [file.name for file in base.parent.iterdir() if file.name.endswith(".tmp")] == []


def test_set_aside__keeps_everything_under_another_name(base: Path) -> None:
    """A damaged index goes aside with its side files, twice within a second too."""
    names: set[str] = set()
    for _ in range(2):
        base.write_bytes(b"broken")
        base.with_name("index.db-wal").write_bytes(b"log")
        aside = set_aside(base)
        assert aside.read_bytes() == b"broken"
        assert aside.with_name(f"{aside.name}-wal").read_bytes() == b"log"
        names.add(aside.name)
    assert len(names) == 2
    assert not base.exists()
    assert not base.with_name("index.db-wal").exists()
