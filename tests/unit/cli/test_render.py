"""What a person's terminal and a pipe are given."""

import re

import pytest

from local_vector_search_mcp.cli.render import Screen, clean


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("日本 é 😀", "日本 é 😀"),
        ("a\r\nb", "a\nb"),
        ("\x1b[31mred", "\ufffd[31mred"),
        ("a\x00\x07\x08b", "a\ufffd\ufffd\ufffdb"),
        ("c1 \x9b31m", "c1 \ufffd31m"),
        ("turned \u202e around", "turned \ufffd around"),
        ("del\x7f", "del\ufffd"),
    ],
)
def test_clean__control_characters_are_harmless(text: str, shown: str) -> None:
    """Nothing in a file can move the cursor, change colours or turn text around."""
    assert clean(text) == shown


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_pipe__plain(capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe there is neither colour nor frame, and text is exact."""
    screen = Screen()
    assert not screen.is_terminal
    screen.line("a [bold]b", style="red")
    screen.exact("no end \x1b[0m")
    screen.table(("x", "y"), [("1", "a\nb"), ("2", "c  d")])
    screen.snippet("one **two**\n\nthree", indent="  ")
    assert shown(capsys) == "a [bold]b\nno end \x1b[0m1\ta b\n2\tc d\n  one **two**\n  three\n"


def test_pipe__json_is_one_line_and_unescaped(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON in a pipe is one line, with every character as itself."""
    Screen().json({"a": ["é", "日本"], "b": None})
    assert shown(capsys) == '{"a": ["é", "日本"], "b": null}\n'


def test_pipe__progress_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """A progress bar never floods a log or an agent's transcript."""
    with Screen().progress("working") as show:
        show(1, 2, "x")
    output = capsys.readouterr()
    assert output.out == output.err == ""


def terminal(monkeypatch: pytest.MonkeyPatch, *, columns: str = "80") -> Screen:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen()
    screen.__dict__["is_terminal"] = True
    return screen


def test_terminal__colour_table_and_clean_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person sees colours and a table with its header, and nothing of a file is obeyed."""
    screen = terminal(monkeypatch)
    screen.line("a [bold]b\x1b[2J", style="red")
    screen.table(("x", "name"), [("1", "é\x07")], numbers=(0,))
    screen.snippet("one **two** three", indent="  ")
    screen.exact("no end")
    output = shown(capsys)
    assert "a [bold]b\ufffd[2J" in output
    assert "name" in output
    assert "é\ufffd" in output
    assert "**" not in output
    assert "\x1b[" in output
    assert output.endswith("no end\n")


def test_terminal__what_people_copy_stays_in_one_piece(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pointer is not broken where there is room, an empty column is left out, and nothing is cut off."""
    pointer = "1.2.p3~0123456789abcdef~0123456789abcdef"
    rows = [("a long path/" * 6, "", pointer), ("b", "", "1~0123456789abcdef~0123456789abcdef")]
    terminal(monkeypatch).table(("document", "nothing", "pointer"), rows, whole=(2,))
    output = shown(capsys)
    assert pointer in output
    assert "nothing" not in output
    terminal(monkeypatch, columns="40").table(("document", "nothing", "pointer"), rows, whole=(2,))
    digits = [character for character in re.sub(r"\x1b\[[0-9;]*m", "", shown(capsys)) if character.isdigit()]
    assert len(digits) == sum(character.isdigit() for row in rows for cell in row for character in cell)


@pytest.mark.parametrize("total", [None, 0, 5])
def test_terminal__progress_of_nothing_is_no_full_bar(
    total: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A total that is not known yet is shown as such."""
    screen = terminal(monkeypatch)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with screen.progress("working") as show:
        show(0, total, None)
    assert "0/0" not in capsys.readouterr().err
