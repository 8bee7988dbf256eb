"""What runs for which arguments, and how errors end."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from local_vector_search_mcp import __version__, errors
from local_vector_search_mcp.cli import main as cli
from local_vector_search_mcp.cli.exits import ExitCode, exit_code_for
from local_vector_search_mcp.errors import Conflict, ConflictReason, KnowledgeBaseError


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "nonsense"),
        (["--nonsense"], "--nonsense"),
        (["search"], "QUERY"),
        (["--force"], "--force"),
        (["--status", "--reindex"], "together"),
        (["--reindex", "search", "x"], "--reindex"),
        (["--json"], "--json"),
        (["serve", "--connect", "http://127.0.0.1:1/mcp"], "--connect"),
        (["--transport", "http", "--connect", "http://127.0.0.1:1/mcp"], "--connect"),
        (["--scope", "all", "--status"], "--scope"),
        (["--config", "absent.yaml", "--status"], "absent.yaml"),
        (["--project-root", "absent", "--status"], "absent"),
        (["search", "x", "--where", "{"], "--where"),
        (["patch", "a.md", "absent.json"], "absent.json"),
    ],
)
def test_run__wrong_use_is_one_line_and_2(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong use ends with 2 and one line on standard error that names what is wrong."""
    assert cli.run(arguments) == ExitCode.WRONG_USE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: INVALID_")
    assert output.err.count("\n") == 1
    assert words in output.err


def test_run__version(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` names program and version."""
    assert cli.run(["--version"]) == 0
    assert capsys.readouterr().out == f"local-vector-search-mcp {__version__}\n"


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([name, "--help"] for name in cli.COMMANDS)])
def test_run__help(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Every command has help, on standard output."""
    assert cli.run(arguments) == 0
    assert "Usage: local-vector-search-mcp" in capsys.readouterr().out


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    def fail(*_arguments: object, **_settings: object) -> int:
        raise error

    monkeypatch.setattr(cli.program, "main", fail)
    return cli.run([])


def test_run__message_of_several_lines_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message never spreads over lines, where a script would miss its end."""
    assert raising(errors.NotFound("a\n  b\tc"), monkeypatch) == ExitCode.NOT_FOUND
    assert capsys.readouterr().err == "error: NOT_FOUND: a b c\n"


def test_run__unexpected_error_is_an_incident(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """No traceback reaches a person, unless they ask for it by the log level."""
    with caplog.at_level(logging.DEBUG):
        assert raising(RuntimeError("secret"), monkeypatch) == ExitCode.FAILED
    error = capsys.readouterr().err
    assert error.startswith("error: INTERNAL: ")
    assert "secret" not in error
    assert "incident" in error
    assert caplog.records[0].exc_info is not None


def test_run__interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl+C ends quietly, with the code that shells give."""
    assert raising(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr().err == ""


EXITS = {
    "INVALID_ARGUMENT": 2,
    "INVALID_PATH": 2,
    "INVALID_POINTER": 2,
    "INVALID_CONFIG": 2,
    "OVERLAPPING_OPERATIONS": 2,
    "NOT_FOUND": 3,
    "POINTER_NOT_FOUND": 3,
    "CONFLICT": 4,
    "ALREADY_EXISTS": 4,
    "EMBEDDING_UNAVAILABLE": 5,
}


@pytest.mark.parametrize("error", [value for value in vars(errors).values() if isinstance(value, type)], ids=str)
def test_exit__code(error: type) -> None:
    """Each error ends with its exit code, all that stand in no row with 1."""
    if not issubclass(error, KnowledgeBaseError):
        return
    if issubclass(error, Conflict):
        made: KnowledgeBaseError = error("x", reason=ConflictReason.CHANGED)
    elif issubclass(error, errors.StructureChanged):
        made = error("x", reason=errors.StructureReason.FRAGMENT)
    else:
        made = error("x")
    assert exit_code_for(made) == EXITS.get(error.code, 1)


def test_init__writes_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The configuration is written, kept when it is there, and can be used."""
    assert cli.run(["init"]) == 0
    path = Path(".local-vector-search-mcp.yaml")
    assert capsys.readouterr().out.startswith("Wrote ")
    path.write_text(path.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    assert cli.run(["init"]) == 0
    assert capsys.readouterr().out.startswith("Kept ")
    assert path.read_text(encoding="utf-8").endswith("# mine\n")
    assert cli.run(["--config", str(path), "init"]) == 0


def test_init__names_every_client(capsys: pytest.CaptureFixture[str]) -> None:
    """Each client gets its registration, for this project and with the options that were given."""
    assert cli.run(["init", "--json", "--scope", "edit", "--no-watch-files", "--include", "a", "--include", "b"]) == 0
    result = json.loads(capsys.readouterr().out)
    entries = {entry["client"]: entry["text"] for entry in result["registrations"]}
    assert set(entries) == {"claude-code", "codex", "claude-desktop", "vscode", "cursor"}
    for text in entries.values():
        words = " ".join(text.replace('"', " ").replace(",", " ").split())
        config = "--config .local-vector-search-mcp.yaml"
        assert f"{config} --scope edit --no-watch-files --include a --include b" in words
    assert entries["claude-code"].startswith("claude mcp add --transport stdio --scope local kb -- ")
    assert entries["codex"].startswith("codex mcp add kb -- ")
    assert str(Path.cwd()) in entries["codex"]
    assert "${workspaceFolder}" in json.loads(entries["vscode"])["servers"]["kb"]["args"]
    assert Path(json.loads(entries["claude-desktop"])["mcpServers"]["kb"]["command"]).is_absolute()


def test_init__picks_clients(capsys: pytest.CaptureFixture[str]) -> None:
    """``--client`` leaves the others out."""
    assert cli.run(["init", "--json", "--client", "codex", "--client", "cursor"]) == 0
    assert [entry["client"] for entry in json.loads(capsys.readouterr().out)["registrations"]] == ["codex", "cursor"]


def test_init__writes_client_files_beside_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Other servers stay, a second time changes nothing, and another server of our name is left alone."""
    Path(".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}, "more": 1}', encoding="utf-8")
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_text('{"mcpServers": {"kb": {"command": "theirs"}}}', encoding="utf-8")
    assert cli.run(["init", "--write"]) == 0
    assert "another server named kb" in capsys.readouterr().out
    written = json.loads(Path(".mcp.json").read_text(encoding="utf-8"))
    assert written["mcpServers"]["other"] == {"command": "x"}
    assert written["more"] == 1
    assert "kb" in written["mcpServers"]
    assert json.loads(Path(".cursor/mcp.json").read_text(encoding="utf-8"))["mcpServers"]["kb"] == {"command": "theirs"}
    before = Path(".mcp.json").read_bytes()
    assert cli.run(["init", "--write"]) == 0
    assert Path(".mcp.json").read_bytes() == before


@pytest.mark.parametrize("content", ["// comment\n{}", "[]", '{"mcpServers": []}', "{"])
def test_init__leaves_files_that_it_does_not_understand(content: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A client file with comments or of another shape is not rewritten."""
    Path(".mcp.json").write_text(content, encoding="utf-8")
    assert cli.run(["init", "--write", "--client", "claude-code"]) == 0
    assert Path(".mcp.json").read_text(encoding="utf-8") == content
    assert "by hand" in capsys.readouterr().out


def test_init__cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A configuration that cannot be written is a failure, not a silence."""
    assert cli.run(["init", "--config", str(tmp_path / "no" / "such" / "x.yaml")]) == ExitCode.FAILED
    assert capsys.readouterr().err.startswith("error: IO_ERROR: ")
