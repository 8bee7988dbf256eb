"""Every benchmark is one that the one command runs."""

import ast
from pathlib import Path

import pytest
from tests.support.source_tree import ROOT

MODULES = sorted((ROOT / "tests" / "benchmarks").glob("bench_*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_benchmark__has_its_shape(path: Path) -> None:
    """A benchmark has a subject for its heading, and ``run(quick)`` that gives rows."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "run" in functions
    assert [argument.arg for argument in functions["run"].args.args] == ["quick"]
    assert functions["run"].returns is not None
    assert ast.unparse(functions["run"].returns) == "list[Row]"
