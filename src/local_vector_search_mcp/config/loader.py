"""Which layer wins: defaults, the file given with ``--config``, the environment, the command line.

The project directory is not trusted: no file is ever looked for, and only a named one is read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from local_vector_search_mcp.config.layers import (
    Layer,
    Location,
    command_line_layer,
    environment_layer,
    file_layer,
)
from local_vector_search_mcp.config.models import Config, ConfigFile
from local_vector_search_mcp.errors import ConfigError

_MOST_SHOWN = 3

_Model = TypeVar("_Model", bound=BaseModel)


def load_config(
    *,
    config_file: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    project_root: Path | None = None,
) -> Config:
    """Read every layer and give the settings in force.

    Args:
        config_file: The file named on the command line; a relative one starts at the working directory, and
            where there is none of that name, at the project root.
        environ: The environment variables.
        overrides: Option name (``--root``) to value, as given; None means not given.
        project_root: The option ``--project-root``; without it ``CLAUDE_PROJECT_DIR``, then the working directory.

    Raises:
        ConfigError: Something is wrong; the message names file, line and key, or variable, or option.
    """
    root = find_project_root(project_root, environ)
    file = file_layer(_locate(config_file, root)) if config_file is not None else Layer({})
    layers = [file, environment_layer(environ, file), command_line_layer(overrides)]
    merged: dict[str, Any] = {}
    for layer in layers:
        _check(ConfigFile, layer.values, [layer])
        for section, content in layer.values.items():
            merged[section] = {**merged.get(section, {}), **content} if isinstance(content, dict) else content
    return _check(Config, {**merged, "project_root": root}, layers)


def find_project_root(given: Path | None, environ: Mapping[str, str]) -> Path:
    """The project root, absolute and resolved.

    Raises:
        ConfigError: It is not a directory that exists.
    """
    if given is not None:
        path, source = given, "--project-root"
    elif environ.get("CLAUDE_PROJECT_DIR"):
        path, source = Path(environ["CLAUDE_PROJECT_DIR"]), "CLAUDE_PROJECT_DIR"
    else:
        path, source = Path(), "The working directory"
    try:
        resolved = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{source}: the project root {path} does not exist or cannot be reached.") from error
    if not resolved.is_dir():
        raise ConfigError(f"{source}: the project root {path} is not a directory.")
    return resolved


def _locate(config_file: Path, project_root: Path) -> Path:
    path = config_file.expanduser()
    if path.is_absolute() or path.exists():
        return path
    return project_root / path if (project_root / path).exists() else path


def _check(model: type[_Model], values: Mapping[str, Any], layers: list[Layer]) -> _Model:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_describe(error, layers)) from error


def _describe(error: ValidationError, layers: list[Layer]) -> str:
    """All that is wrong in one line, each with its origin; values are not repeated, for they may be secrets."""
    problems: dict[str, list[str]] = {}
    for detail in error.errors(include_url=False, include_input=False):
        location = _location(detail["loc"])
        origin = next((found for layer in reversed(layers) if (found := layer.origin(location))), None)
        shown = _shown(location)
        place = ": ".join(part for part in (origin, shown) if part)
        problems.setdefault(place, []).append(_wording(detail))
    # A list beside a word ("auto"): what is wrong inside the list says more than that it is not the word.
    inner = {place.rpartition("[")[0].rpartition(": ")[2] for place in problems if place.endswith("]")}
    problems = {place: texts for place, texts in problems.items() if place.rpartition(": ")[2] not in inner}
    lines = [f"{place}: {' or '.join(dict.fromkeys(texts))}" for place, texts in problems.items()]
    rest = f" (and {len(lines) - _MOST_SHOWN} more)" if len(lines) > _MOST_SHOWN else ""
    return "; ".join(lines[:_MOST_SHOWN]) + "." + rest


def _location(loc: tuple[str | int, ...]) -> Location:
    """Section, key and indexes in snake_case; the branches of a union, which a reader has no use for, left out."""
    names = 3 if loc[0] == "collections" else 2
    return tuple(
        part if isinstance(part, int) else to_snake(part)
        for depth, part in enumerate(loc)
        if isinstance(part, int) or depth < names
    )


def _shown(location: Location) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{to_camel(part)}"
    return text.removeprefix(".")


def _wording(detail: ErrorDetails) -> str:
    facts = detail.get("ctx", {})
    match detail["type"]:
        case "bool_type" | "bool_parsing":
            return "give true or false"
        case "int_type" | "int_parsing" | "int_from_float":
            return "give a whole number"
        case "float_type" | "float_parsing" | "finite_number":
            return "give a number"
        case "string_type":
            return "give a text"
        case "tuple_type":
            return "give a list"
        case "enum" | "literal_error":
            return f"give {facts['expected']}"
        case "greater_than_equal":
            return f"give at least {facts['ge']}"
        case "greater_than":
            return f"give more than {facts['gt']}"
        case "less_than_equal":
            return f"give at most {facts['le']}"
        case "missing":
            return "this key is needed"
        case "string_too_short":
            return "give a text that is not empty"
        case "string_pattern_mismatch":
            return f"give a text of the form {facts['pattern']}"
        case "too_short":
            return "give at least one item"
        case "value_error":
            return str(facts["error"])
        case _:
            return detail["msg"][:1].lower() + detail["msg"][1:]
