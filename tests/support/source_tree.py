"""The project's own files as tests look at them: modules and what they import, and every text file."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "local_vector_search_mcp"
SOURCE = ROOT / "src" / PACKAGE


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name below the package; "" is the package itself."""
    found: dict[str, ast.Module] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    return found


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that is imported anywhere in a module, inside functions and for types too.

    Of ``from a.b import c`` both ``a.b`` and ``a.b.c`` are given, since ``c`` may be a module.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide where an arrow points"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(tree: ast.Module) -> set[str]:
    """The modules of this package that a module imports, by their names below the package."""
    known = modules()
    names = {name.removeprefix(f"{PACKAGE}.") for name in imports(tree) if name.startswith(f"{PACKAGE}.")}
    return {name for name in names if name in known}


def foreign_imports(tree: ast.Module) -> set[str]:
    """The top-level names of everything else that a module imports."""
    return {name.partition(".")[0] for name in imports(tree)} - {PACKAGE}


def tracked_files() -> list[Path]:
    """Every file that is or would be committed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]
