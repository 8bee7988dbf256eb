"""The command line as installed: one project from the first search to an undone edit."""

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Finished, clean_environment, command, run

GUIDE = (
    b"\xef\xbb\xbf---\ntitle: Guide\ntags: [howto]\nstatus: draft\n---\r\n\r\n# Guide\r\n\r\n"
    b"Turn the *kettle* on.  \r\n\n## Tea\n\n- green\n- black\n\nSee [[notes]] and [gone](gone.md).\n"
)
NOTES = "# Notes\n\nDie Änderung ist rückgängig zu machen. 日本語の検索。\n\nThe kettle_timer option is 90.".encode()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "guide.md").write_bytes(GUIDE)
    (root / "sub" / "notes.md").write_bytes(NOTES)
    (root / ".env").write_text("FASTMCP_LOG_LEVEL=bogus\nLVS_MCP_KNOWLEDGE_BASE__SCOPE=full\n", encoding="utf-8")
    (root / ".local-vector-search-mcp.yaml").write_text("knowledgeBase: {allowWrites: true}\n", encoding="utf-8")
    return root


def lvs(root: Path, *arguments: str, stdin: bytes = b"", environ: dict[str, str] | None = None) -> Finished:
    """Run lexically, in the project, as a person there would."""
    return run(root, "--embedding-provider", "none", *arguments, stdin=stdin, environ=environ)


def ok(done: Finished) -> Finished:
    assert done.code == 0, done.err.decode()
    return done


def check_fails(done: Finished, exit_code: int, code: str) -> None:
    assert done.code == exit_code, done.err.decode()
    assert done.error.startswith(f"error: {code}: ")
    assert b"Traceback" not in done.err
    assert done.out == b""


def test_search__indexes_first_and_finds(project: Path) -> None:
    """The first search of a project indexes it; a second sees what changed since."""
    done = ok(lvs(project, "search", "kettle"))
    assert "guide.md" in done.text
    assert "sub/notes.md" in done.text
    assert b"\x1b[" not in done.out
    (project / "new.md").write_text("# New\n\nA quixotic note.\n", encoding="utf-8")
    assert "new.md" in ok(lvs(project, "search", "quixotic")).text
    (project / "new.md").unlink()
    empty = ok(lvs(project, "search", "quixotic"))
    assert "new.md" not in empty.text
    assert "quixotic" in empty.text  # Named as a term that occurs nowhere.


def test_search__json_is_the_tools_result(project: Path) -> None:
    """``--json`` gives the structured result, before and after the command alike."""
    before = ok(lvs(project, "--json", "search", "kettle", "--limit", "1")).json
    after = ok(lvs(project, "search", "--json", "kettle", "-n", "1")).json
    assert before == after
    assert [hit["rank"] for hit in after["results"]] == [1]
    assert after["mode"] == "lexical"
    assert {"results", "mode", "missingTerms", "warnings"} <= set(after)
    assert "path" in after["results"][0]["readHint"]


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (["kettle", "--path-prefix", "sub"], ["sub/notes.md"]),
        (["kettle", "--glob", "guide.*"], ["guide.md"]),
        (["kettle", "--not-glob", "guide.md"], ["sub/notes.md"]),
        (["kettle", "--tag", "HowTo"], ["guide.md"]),
        (["kettle", "--where", '{"status": "draft"}'], ["guide.md"]),
        (["kettle", "--modified-after", "2100-01-01"], []),
        (["検索"], ["sub/notes.md"]),
        (["ruckgangig"], ["sub/notes.md"]),
        (["kettle", "-sencha", "--path-prefix", "sub"], None),
        (["nothingatall"], []),
    ],
)
def test_search__filters(project: Path, arguments: list[str], paths: list[str] | None) -> None:
    """Every filter narrows the answer; what is no option is wrong use; nothing found is no failure."""
    done = lvs(project, "search", "--json", *arguments)
    if paths is None:
        assert done.code == 2
        return
    assert [hit["path"] for hit in ok(done).json["results"]] == paths


def test_read__gives_the_bytes_of_the_file(project: Path) -> None:
    """A whole document comes exactly as it stands, whatever its line ends; the BOM alone stays behind."""
    assert ok(lvs(project, "read", "guide.md")).out == GUIDE[3:]
    assert ok(lvs(project, "read", "sub/notes.md")).out == NOTES
    long = "\n\n".join(f"Paragraph {n} {'word ' * n}" for n in range(600)).encode()
    (project / "long.md").write_bytes(long)
    assert ok(lvs(project, "read", "long.md")).out == long


def test_read__slice_and_full_pointer(project: Path) -> None:
    """A pointer gives its place on; a full pointer needs no second argument."""
    hit = ok(lvs(project, "search", "--json", "green")).json["results"][0]
    by_two = ok(lvs(project, "read", hit["path"], hit["pointer"], "--max-elements", "1"))
    by_one = ok(lvs(project, "read", hit["fullPointer"], "--max-elements", "1"))
    assert by_one.out == by_two.out
    assert b"green" in by_one.out
    page = ok(lvs(project, "read", "--json", "guide.md", "--max-elements", "2")).json
    assert len(page["elements"]) == 2
    assert "nextPointer" in page


def test_outline_and_links(project: Path) -> None:
    """Headings with pointers; what is broken, and what links where."""
    headings = ok(lvs(project, "outline", "--json", "guide.md")).json["headings"]
    assert [heading["text"] for heading in headings] == ["Guide"]
    assert [child["text"] for child in headings[0]["children"]] == ["Tea"]
    assert "Tea" in ok(lvs(project, "outline", "guide.md")).text
    broken = ok(lvs(project, "links", "--json")).json["links"]
    assert [(link["path"], link["target"]) for link in broken] == [("guide.md", "gone.md")]
    incoming = ok(lvs(project, "links", "sub/notes.md", "--direction", "incoming", "--json")).json["links"]
    assert [link["path"] for link in incoming] == ["guide.md"]
    assert ok(lvs(project, "links", "--direction", "orphans")).text.split() == ["guide.md"]


def paragraph(project: Path) -> str:
    elements = ok(lvs(project, "read", "--json", "guide.md")).json["elements"]
    found = next(element["pointer"] for element in elements if element["kind"] == "paragraph")
    assert isinstance(found, str)
    return found


def operation(pointer: str, markdown: str) -> dict[str, str]:
    return {"kind": "replace_element", "pointer": pointer, "markdown": markdown}


def test_patch_history_undo(project: Path) -> None:
    """A person edits by pointer, sees the diff first, and takes the edit back; the bytes are the old ones again."""
    operations = json.dumps([operation(paragraph(project), "Turn it off.")]).encode()
    dry = ok(lvs(project, "patch", "guide.md", "--dry-run", stdin=operations))
    assert "+Turn it off." in dry.text
    assert (project / "guide.md").read_bytes() == GUIDE
    plan = ok(lvs(project, "patch", "--json", "guide.md", "--dry-run", stdin=operations)).json["planHash"]
    (project / "ops.json").write_bytes(operations)
    done = ok(lvs(project, "patch", "--json", "guide.md", "ops.json", "--plan-hash", plan)).json
    assert done["applied"] is True
    assert (project / "guide.md").read_bytes() == GUIDE.replace(b"Turn the *kettle* on.  ", b"Turn it off.")
    assert [hit["path"] for hit in ok(lvs(project, "search", "--json", "off")).json["results"]] == ["guide.md"]

    changes = ok(lvs(project, "history", "--json", "guide.md")).json["changes"]
    assert [change["changeId"] for change in changes] == [done["changeId"]]
    shown = ok(lvs(project, "history", "--change", done["changeId"])).text
    assert "+Turn it off." in shown
    ok(lvs(project, "undo", done["changeId"]))
    assert (project / "guide.md").read_bytes() == GUIDE
    assert len(ok(lvs(project, "history", "--json")).json["changes"]) == 2


def test_errors__exit_codes(project: Path) -> None:
    """Each kind of failure has its exit code, one line, and no traceback."""
    pointer = paragraph(project)
    operations = json.dumps({"operations": [operation(pointer, "Once.")]}).encode()
    ok(lvs(project, "patch", "guide.md", "-", stdin=operations))
    check_fails(lvs(project, "patch", "guide.md", stdin=operations), 4, "CONFLICT")
    check_fails(lvs(project, "read", "absent.md"), 3, "NOT_FOUND")
    check_fails(lvs(project, "read", "../outside.md"), 2, "INVALID_PATH")
    check_fails(lvs(project, "read", "guide.md", "9.9.p9"), 3, "POINTER_NOT_FOUND")
    check_fails(lvs(project, "read", "guide.md", "?"), 2, "INVALID_POINTER")
    check_fails(lvs(project, "search", ""), 2, "INVALID_ARGUMENT")
    check_fails(lvs(project, "search", "kettle", "-n", "51"), 2, "INVALID_ARGUMENT")
    check_fails(lvs(project, "search", "kettle", "--mode", "semantic"), 5, "EMBEDDING_UNAVAILABLE")
    check_fails(lvs(project, "patch", "guide.md", stdin=b"nonsense"), 2, "INVALID_ARGUMENT")
    check_fails(lvs(project, "undo", "no-such-change"), 3, "NOT_FOUND")
    check_fails(lvs(project, "outline", "ops.json"), 2 if (project / "ops.json").exists() else 1, "UNSUPPORTED_FORMAT")
    check_fails(lvs(project, "--root", "absent", "--status"), 2, "INVALID_CONFIG")


def test_maintenance__as_options(project: Path) -> None:
    """Status before and after, reindexing, and rebuilding, all without a command."""
    assert ok(lvs(project, "--status", "--json")).json["index"]["state"] == "empty"
    done = ok(lvs(project, "--project-root", str(project), "--reindex", "--json")).json
    assert (done["outcome"], done["changed"]) == ("succeeded", 2)
    assert ok(lvs(project, "--reindex", "--json")).json["changed"] == 0
    status = ok(lvs(project, "--status", "--json")).json
    assert (status["index"]["state"], status["index"]["documents"], status["scope"]) == ("ready", 2, "read")
    assert "2 changed, 0 removed" in ok(lvs(project, "--reindex", "--force")).text
    other = {"LVS_MCP_CHUNKING__MAX_ELEMENTS": "3"}
    refused = lvs(project, "--reindex", environ=other)
    assert refused.code == 1
    assert "--reindex --force" in refused.error
    assert "maxElements" in ok(lvs(project, "--status", environ=other)).text
    assert "2 documents" in ok(lvs(project, "--status")).text


def test_storage__is_private_and_ignored(project: Path) -> None:
    """The directory that is made is for its owner only, and keeps itself out of version control."""
    ok(lvs(project, "--reindex"))
    storage = project / ".local-vector-search-mcp"
    assert (storage / ".gitignore").read_text(encoding="utf-8").strip() == "*"
    if os.name == "posix":
        assert stat.S_IMODE(storage.stat().st_mode) == 0o700


def test_environment__hostile_project_changes_nothing(project: Path) -> None:
    """Neither a configuration nor an .env in the project is read, nor the protocol library's own variables."""
    environ = {"FASTMCP_LOG_LEVEL": "bogus", "FASTMCP_ENV_FILE": str(project / ".env")}
    assert ok(lvs(project, "--status", "--json", environ=environ)).json["scope"] == "read"


def test_environment__settings_and_secrets(project: Path) -> None:
    """A variable is a setting; an unknown one stops the start by name."""
    environ = {"LVS_MCP_KNOWLEDGE_BASE__SCOPE": "edit"}
    assert ok(lvs(project, "--status", "--json", environ=environ)).json["scope"] == "edit"
    check_fails(lvs(project, "--status", environ={"LVS_MCP_KNOWLEDGE_BASE__SCOP": "edit"}), 2, "INVALID_CONFIG")


def test_collections__are_searched_and_read(project: Path, tmp_path: Path) -> None:
    """A further tree is indexed, found and read by its name, and never written."""
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "tea.md").write_text("# Tea rules\n\nThe kettle belongs to everyone.\n", encoding="utf-8")
    config = tmp_path / "settings.yaml"
    config.write_text("collections:\n  - name: handbook\n    root: ../handbook\n", encoding="utf-8")
    hits = ok(lvs(project, "--config", str(config), "search", "--json", "kettle")).json["results"]
    assert {hit.get("collection") for hit in hits} == {None, "handbook"}
    only = ok(lvs(project, "--config", str(config), "search", "--json", "kettle", "--collection", "handbook")).json
    assert [hit["path"] for hit in only["results"]] == ["tea.md"]
    read = ok(lvs(project, "--config", str(config), "read", "tea.md", "--collection", "handbook"))
    assert read.out == (handbook / "tea.md").read_bytes()
    assert sorted(path.name for path in handbook.iterdir()) == ["tea.md"]
    check_fails(lvs(project, "--config", str(config), "search", "x", "--collection", "nope"), 2, "INVALID_ARGUMENT")


@pytest.mark.parametrize("environ", [{}, {"PYTHONUTF8": "0"}, {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"}])
def test_locale__names_and_texts_are_utf8(project: Path, environ: dict[str, str]) -> None:
    """A locale that is not UTF-8 changes neither arguments nor file names nor what is printed."""
    (project / "豆😀.md").write_text("# 豆腐😀\n", encoding="utf-8")
    done = lvs(project, "read", "豆😀.md", environ=environ)
    assert (done.code, done.text) == (0, "# 豆腐😀\n")
    assert "豆😀.md" in lvs(project, "search", "豆腐", environ=environ).text
    assert "豆無.md" in lvs(project, "read", "豆無.md", environ=environ).error


def test_pipe__closed_early_is_quiet(project: Path) -> None:
    """``… | head`` ends without a word."""
    (project / "long.md").write_text("line\n\n" * 200_000, encoding="utf-8")
    process = subprocess.Popen(
        command("--embedding-provider", "none", "read", "long.md"),
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    error = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=50)
    assert error == b""


def test_doctor__says_what_works(project: Path) -> None:
    """Every part is checked and told with its remedy; the exit code says whether all that is needed works."""
    done = lvs(project, "doctor", "--json")
    checks: dict[str, Any] = {check["name"]: check for check in done.json["checks"]}
    assert {"SQLite", "sqlite-vec", "embedding provider", "root", "storage", "file watching", "Pango"} <= set(checks)
    assert checks["SQLite"]["health"] == "ok"
    assert checks["embedding provider"]["health"] == "limited"
    assert all(("remedy" in check) == (check["health"] != "ok") for check in checks.values())
    assert done.code == (1 if any(check["health"] == "failed" for check in checks.values()) else 0)


def test_doctor__provider_away(project: Path) -> None:
    """A provider that does not answer is told with exit code 5."""
    arguments = ["--embedding-provider", "ollama", "--embedding-endpoint", "http://127.0.0.1:9"]
    done = run(project, *arguments, "doctor", "--json")
    health = {check["name"]: check["health"] for check in done.json["checks"]}
    assert health["embedding provider"] == "failed"
    assert done.code == 5
