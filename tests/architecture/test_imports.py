"""Which package may import which: one flow, and no arrow that points up."""

import ast

import pytest
from tests.support.source_tree import foreign_imports, modules, own_imports

BASE = {"errors", "relpath", "digests", "scopes"}
ENDS = {"markdown", "workspace", "embeddings", "history"}
MIDDLE = {"editing", "index", "book"}
INNER = {*ENDS, *MIDDLE, "search"}

# The rooms from which the configuration takes the settings that it fills, and what it checks globs with.
SETTINGS_ROOMS = {
    "workspace.listing",
    "workspace.globs",
    "workspace.guard",
    "index.chunker",
    "index.embedding_text",
    "embeddings.factory",
    "history.store",
    "search.search",
    "search.stop_words",
}
# What a tool is and how a call of it is answered, which the command line calls without a server.
TOOL_ROOMS = {"server.arguments", "server.results", "server.toolspec", "server.tools.catalogue", "server.json_types"}
SERVING_ROOMS = {"server.build", "server.http", "server.relay"}

ALLOWED: dict[str, set[str]] = {
    "": set(),
    "errors": set(),
    "relpath": {"errors"},
    "digests": {"errors"},
    "scopes": {"errors"},
    **dict.fromkeys(ENDS, BASE),
    **{package: BASE | {"markdown"} for package in MIDDLE},
    "search": BASE | {"markdown", "index"},
    "services": BASE | INNER,
    "config": BASE | SETTINGS_ROOMS,
    "app": BASE | INNER | {"services", "config"},
    "server": BASE | {"services", "app"},
    "cli": BASE | {"services", "app", "config"} | TOOL_ROOMS | SERVING_ROOMS,
    "__main__": {"cli"},
}

# The one place that knows a library, and so the one that turns its errors into ours.
ONLY_IN: dict[str, tuple[str, ...]] = {
    "fastmcp": ("server.isolated",),
    "mcp": ("server",),
    "weasyprint": ("book.pdf",),
    "apsw": ("index", "history", "search", "services"),
    "click": ("cli",),
    "rich": ("cli",),
    "pydantic": ("config", "server"),
    "watchdog": ("workspace",),
    "filelock": ("workspace",),
    "pathspec": ("workspace",),
    "markdown_it": ("markdown", "editing", "book"),
    "mdit_py_plugins": ("markdown", "book"),
    "ollama": ("embeddings",),
    "wordllama": ("embeddings",),
    "onnxruntime": ("embeddings",),
    "tokenizers": ("embeddings",),
}
PURE = ("markdown", "editing")
NO_IO = {"os", "pathlib", "sqlite3", "apsw", "asyncio", "socket", "subprocess", "pydantic", "tempfile", "shutil", "io"}


def package_of(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.parametrize("module", sorted(modules()))
def test_imports__arrows_point_down(module: str) -> None:
    """A module imports its own package, and what stands in the table for it."""
    package = package_of(module)
    assert package in ALLOWED, f"{package} has no place in the flow"
    allowed = ALLOWED[package] | {package}
    wrong = {
        name
        for name in own_imports(modules()[module])
        if name and package_of(name) not in allowed and name not in allowed
    }
    assert not wrong, f"{module} may not import {sorted(wrong)}"


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_imports__library_has_one_home(library: str) -> None:
    """A library is imported only where its errors become ours."""
    homes = ONLY_IN[library]
    strangers = {
        module
        for module, tree in modules().items()
        if library in foreign_imports(tree)
        and not any(module == home or module.startswith(f"{home}.") for home in homes)
    }
    assert not strangers, f"{library} is imported in {sorted(strangers)}"


@pytest.mark.parametrize("module", sorted(name for name in modules() if package_of(name) in PURE))
def test_imports__the_middle_is_pure(module: str) -> None:
    """Markdown and editing take values and give values: no disk, database or waiting."""
    assert not foreign_imports(modules()[module]) & NO_IO


def test_imports__no_cycle_of_modules() -> None:
    """No module leads back to itself, whatever is imported when a module is loaded."""
    edges = {name: _loaded_imports(tree) for name, tree in modules().items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail[trail.index(name) :], name))
        if name in done:
            return
        for other in sorted(edges.get(name, ())):
            visit(other, (*trail, name))
        done.add(name)

    for name in sorted(edges):
        visit(name, ())


def test_packages__init_holds_its_docstring() -> None:
    """Things are imported from the room itself."""
    for name, tree in modules().items():
        if name and f"{name}.__init__" not in modules() and any(other.startswith(f"{name}.") for other in modules()):
            assert ast.get_docstring(tree), name
            assert len(tree.body) == 1, f"{name}/__init__.py holds more than its docstring"


@pytest.mark.parametrize("module", sorted(modules()))
def test_modules__open_with_their_subject(module: str) -> None:
    """Every room says in its first sentence what it is about."""
    assert ast.get_docstring(modules()[module])


def _loaded_imports(tree: ast.Module) -> set[str]:
    """What is imported when a module is loaded: not inside functions, and not for types only."""
    top = ast.Module(
        body=[node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)], type_ignores=[]
    )
    return own_imports(top) - {""}
