"""The command line: what runs for which arguments, and how every error ends.

With no command it serves MCP over standard input and output. A start must be quick, so nothing heavy is imported
before it is known what runs, and the modules of commands import theirs inside their functions.
"""

import importlib
import io
import logging
import os
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import click

from local_vector_search_mcp import __version__
from local_vector_search_mcp.cli.exits import ExitCode, exit_code_for
from local_vector_search_mcp.cli.options import Given, given, shared_options
from local_vector_search_mcp.errors import InvalidArgument, KnowledgeBaseError

PROGRAM: Final = "local-vector-search-mcp"

COMMANDS: Final = ("init", "search", "read", "outline", "links", "patch", "history", "undo", "book", "doctor", "serve")
# Commands that share a module with a related one.
_MODULES: Final[Mapping[str, str]] = {"outline": "read", "undo": "history"}

_HELP = """Serve one project's Markdown to agents over MCP, or use it from a terminal.

Without a command it serves MCP over standard input and output.
"""


class Program(click.Group):
    """The commands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"local_vector_search_mcp.cli.commands.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and end the process with its exit code."""
    if arguments is None:
        _use_utf8_for_names()
    _use_utf8()
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program.

    Returns:
        The exit code. Errors have been told on standard error, in one line each.
    """
    try:
        result = program.main(
            args=None if arguments is None else list(arguments), prog_name=PROGRAM, standalone_mode=False
        )
    except KnowledgeBaseError as error:
        return _tell(error.code, error.message, exit_code_for(error))
    except click.ClickException as error:
        hint = " See --help." if isinstance(error, click.UsageError) else ""
        return _tell(InvalidArgument.code, error.format_message() + hint, ExitCode.WRONG_USE)
    except (click.Abort, KeyboardInterrupt):
        return 130  # As a shell reports an interrupt.
    except BrokenPipeError:
        # The reader of our output has gone, as in `… | head`; the interpreter must not find that out again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except Exception:
        incident = uuid.uuid4().hex[:12]
        logging.getLogger(__name__).debug("incident %s", incident, exc_info=True)
        message = f"Something unexpected happened (incident {incident}); run again with --log-level debug to see it."
        return _tell("INTERNAL", message, ExitCode.FAILED)
    return result if isinstance(result, int) else ExitCode.DONE


@click.group(
    cls=Program,
    invoke_without_command=True,
    no_args_is_help=False,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.option("--status", is_flag=True, help="Print the state of the index and end.")
@click.option("--reindex", is_flag=True, help="Bring the index in line with the files and end.")
@click.option("--force", is_flag=True, help="With --reindex: rebuild the index from nothing.")
@click.pass_context
def program(context: click.Context, /, *, status: bool, reindex: bool, force: bool) -> int | None:
    """What runs when no command is named."""
    chosen = given(context)
    if context.invoked_subcommand is not None:
        if status or reindex or force:
            raise click.UsageError("--status, --reindex and --force go without a command.")
        return None
    if status and reindex:
        raise click.UsageError("--status and --reindex cannot be given together.")
    if force and not reindex:
        raise click.UsageError("--force goes with --reindex only.")
    if status or reindex:
        from local_vector_search_mcp.cli.commands import maintenance

        return maintenance.status(chosen) if status else maintenance.reindex(chosen, force=force)
    if chosen.as_json:
        raise click.UsageError("--json goes with a command, --status or --reindex.")
    return _serve(chosen)


def _serve(chosen: Given) -> int:
    from local_vector_search_mcp.cli.commands.serve import serve

    return serve(chosen, default_transport="stdio")


program.params[:0] = shared_options()


def _tell(code: str, message: str, exit_code: int) -> int:
    line = " ".join(message.split())
    click.echo(f"error: {code}: {line}", err=True)
    return exit_code


def _use_utf8() -> None:
    """Make the standard streams UTF-8 on every platform, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file name that is not UTF-8 must not stop a message about it, and line ends of documents stay.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _use_utf8_for_names() -> None:
    """Start again in Python's UTF-8 mode where the locale would give file names and arguments another encoding.

    An interpreter settles that before the program runs, so nothing less changes it. Windows always has UTF-8.
    """
    if sys.getfilesystemencoding() == "utf-8" or os.environ.get("PYTHONUTF8") == "1" or not sys.executable:
        return
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONUTF8": "1"})
