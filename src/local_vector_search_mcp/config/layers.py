"""One layer of settings (file, environment, command line) as checked names with their origins.

A layer holds only what was given in it. Its keys are known keys in snake_case; values are plain and not yet typed.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from local_vector_search_mcp.config.models import CollectionSection, ConfigFile
from local_vector_search_mcp.errors import ConfigError

Location = tuple[str | int, ...]
"""A place in the settings: section, key, index."""

ENVIRONMENT_PREFIX: Final = "LVS_MCP_"

# Which option of the command line gives which key.
OPTION_KEYS: Final[Mapping[str, tuple[str, str]]] = {
    "--root": ("knowledge_base", "root"),
    "--include": ("knowledge_base", "include"),
    "--exclude": ("knowledge_base", "exclude"),
    "--allow-writes": ("knowledge_base", "allow_writes"),
    "--scope": ("knowledge_base", "scope"),
    "--watch-files": ("knowledge_base", "watch_files"),
    "--storage-path": ("storage", "path"),
    "--embedding-provider": ("embedding", "provider"),
    "--embedding-endpoint": ("embedding", "endpoint"),
    "--embedding-model": ("embedding", "model"),
    "--search-mode": ("search", "default_mode"),
    "--host": ("http", "host"),
    "--port": ("http", "port"),
    "--log-level": ("server", "log_level"),
}

# Keys that name a variable holding a secret; that variable may bear our prefix too.
_VARIABLE_KEYS = (("embedding", "api_key_env"), ("http", "token_env"))

_LEGACY = (
    "'knowledgeBases' is how older versions listed trees; write one 'knowledgeBase:' section with 'root:' for the "
    "project, and each further tree under 'collections:' with 'name:' and 'root:'"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place gives."""

    values: dict[str, Any]
    origins: dict[Location, str] = field(default_factory=dict[Location, str])

    def origin(self, location: Location) -> str | None:
        """Where the nearest enclosing place of ``location`` was written."""
        for length in range(len(location), 0, -1):
            if location[:length] in self.origins:
                return self.origins[location[:length]]
        return None


def file_layer(path: Path) -> Layer:
    """The layer of a configuration file.

    Raises:
        ConfigError: It cannot be read, or holds an unknown key; file, line and key are named.
    """
    # A start without a file does not pay for the YAML library.
    from local_vector_search_mcp.config.yaml_file import read_yaml

    raw, lines = read_yaml(path)

    def origin(location: Location) -> str:
        return f"{path}, line {lines.get(location, 1)}"

    values: dict[str, Any] = {}
    origins: dict[Location, str] = {}
    for written, content in raw.items():
        if _snake(written) == "knowledge_bases":
            raise ConfigError(f"{origin((written,))}: {_LEGACY}.")
        name = _known(written, ConfigFile, "", values, origin((written,)))
        origins[name,] = origin((written,))
        if name == "collections":
            values[name] = _collections(written, content, origins, origin)
        elif content is None:
            values[name] = {}  # A section whose keys are all commented out.
        elif _is_mapping(content):
            model = section_model(name)
            values[name] = _section(content, model, (written,), (name,), origins, origin)
        else:
            raise ConfigError(f"{origin((written,))}: {to_camel(name)} must be a section with keys of its own.")
    return Layer(values, origins)


def environment_layer(environ: Mapping[str, str], file: Layer | None = None) -> Layer:
    """The layer of the ``LVS_MCP_`` variables.

    Args:
        environ: All environment variables.
        file: The layer below, whose settings may name a variable that holds a secret and bears the prefix.

    Raises:
        ConfigError: An unknown variable of that prefix, or a value that does not read as its type.
    """
    known = {environment_name(section, key): (section, key) for section, key in scalar_keys()}
    secrets = {environ.get(environment_name(*place)) for place in _VARIABLE_KEYS}
    if file is not None:
        named = (file.values.get(section, {}).get(key) for section, key in _VARIABLE_KEYS)
        secrets.update(name for name in named if isinstance(name, str))
    values: dict[str, Any] = {}
    origins: dict[Location, str] = {}
    for variable in sorted(name for name in environ if name.startswith(ENVIRONMENT_PREFIX)):
        if variable in secrets:
            continue  # It holds a secret that a setting names.
        if variable.startswith(f"{ENVIRONMENT_PREFIX}COLLECTIONS"):
            raise ConfigError(
                f"Environment variable {variable}: collections can be given in a configuration file only."
            )
        if variable not in known:
            # Without the prefix, which all have in common.
            names = [name.removeprefix(ENVIRONMENT_PREFIX) for name in known]
            near = difflib.get_close_matches(variable.removeprefix(ENVIRONMENT_PREFIX), names, n=1)
            hint = f"did you mean {ENVIRONMENT_PREFIX}{near[0]}?" if near else "docs/configuration.md lists the names."
            raise ConfigError(f"Environment variable {variable} is not a setting; {hint}")
        section, key = known[variable]
        values.setdefault(section, {})[key] = _from_text(environ[variable], section_model(section), key, variable)
        origins[section, key] = f"Environment variable {variable}"
    return Layer(values, origins)


def command_line_layer(overrides: Mapping[str, object]) -> Layer:
    """The layer of the command line: option name (``--root``) to value; None and ``()`` mean not given."""
    values: dict[str, Any] = {}
    origins: dict[Location, str] = {}
    for option, value in overrides.items():
        if value is None or value == ():
            continue
        section, key = OPTION_KEYS[option]
        values.setdefault(section, {})[key] = value
        origins[section, key] = f"Option {option}"
    return Layer(values, origins)


def scalar_keys() -> Iterator[tuple[str, str]]:
    """Every section and key that the environment can give: all but ``collections``."""
    for section in ConfigFile.model_fields:
        if section != "collections":
            for key in section_model(section).model_fields:
                yield section, key


def section_model(section: str) -> type[BaseModel]:
    """The model of a section."""
    annotation = ConfigFile.model_fields[section].annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, BaseModel)
    return annotation


def environment_name(section: str, key: str) -> str:
    """``LVS_MCP_KNOWLEDGE_BASE__ALLOW_WRITES`` of ``knowledge_base`` and ``allow_writes``."""
    return f"{ENVIRONMENT_PREFIX}{section.upper()}__{key.upper()}"


def _collections(
    written: str, content: object, origins: dict[Location, str], origin: Callable[[Location], str]
) -> tuple[Any, ...]:
    if not _is_list(content):
        raise ConfigError(f"{origin((written,))}: collections must be a list of sections with name and root.")
    found: list[Any] = []
    for index, item in enumerate(content):
        place = origin((written, index))
        origins["collections", index] = place
        if not _is_mapping(item):
            raise ConfigError(f"{place}: each of the collections must be a section with name and root.")
        found.append(_section(item, CollectionSection, (written, index), ("collections", index), origins, origin))
    return tuple(found)


def _section(
    content: dict[str, Any],
    model: type[BaseModel],
    written_at: Location,
    at: Location,
    origins: dict[Location, str],
    origin: Callable[[Location], str],
) -> dict[str, Any]:
    """One section's keys, checked and in snake_case."""
    values: dict[str, Any] = {}
    shown = "".join(f"[{part}]" if isinstance(part, int) else to_camel(part) for part in at)
    for written, value in content.items():
        place = origin((*written_at, written))
        key = _known(written, model, f"{shown}.", values, place)
        values[key] = _tuples(value)
        origins[(*at, key)] = place
        if _is_list(value):
            for index in range(len(value)):
                origins[(*at, key, index)] = origin((*written_at, written, index))
    return values


def _known(written: str, model: type[BaseModel], prefix: str, taken: Mapping[str, Any], place: str) -> str:
    """The key in snake_case.

    Raises:
        ConfigError: There is no such key, or it stands there in both spellings.
    """
    key = _snake(written)
    if key not in model.model_fields or written not in (key, to_camel(key)):
        names = [to_camel(name) for name in model.model_fields]
        near = difflib.get_close_matches(to_camel(key), names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}."
        raise ConfigError(f"{place}: {prefix}{written} is not a known key; {hint}")
    if key in taken:
        raise ConfigError(f"{place}: {prefix}{written} stands there twice, as {to_camel(key)} and {key}.")
    return key


def _is_mapping(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _snake(text: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", text).lower()


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if _is_list(value) else value


def _from_text(text: str, model: type[BaseModel], key: str, variable: str) -> Any:
    """An environment variable's text as its key's type.

    Raises:
        ConfigError: It does not read as that type.
    """
    kinds = set(_kinds(model.model_fields[key].annotation))
    if tuple in kinds and (str not in kinds or text.lstrip().startswith("[")):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ConfigError(f'Environment variable {variable}: give a JSON list, such as ["**/*.md"].') from error
        return _tuples(value)
    if str in kinds:
        return text
    word = text.strip().lower()
    if NoneType in kinds and word == "null":
        return None
    if bool in kinds:
        if word in ("true", "1", "yes", "on"):
            return True
        if word in ("false", "0", "no", "off"):
            return False
        raise ConfigError(f"Environment variable {variable}: give true or false.")
    try:
        return int(word) if int in kinds else float(word)
    except ValueError as error:
        raise ConfigError(
            f"Environment variable {variable}: give a {'whole ' if int in kinds else ''}number."
        ) from error


def _kinds(annotation: Any) -> Iterator[type]:
    """The builtin types that an annotation allows; everything written as text counts as ``str``."""
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        for option in get_args(annotation):
            yield from _kinds(option)
    elif origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin is tuple:
        yield tuple
    elif annotation in (bool, int, float, NoneType):
        yield annotation
    else:
        yield str
