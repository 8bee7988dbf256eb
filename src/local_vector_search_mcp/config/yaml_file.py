"""One configuration file as plain values, with the line of every key and list item.

Lines are what a person needs to mend a wrong setting, and only a YAML library that keeps positions has them.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq, TaggedScalar
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from local_vector_search_mcp.config.layers import Location
from local_vector_search_mcp.errors import ConfigError

_MAX_BYTES = 1024 * 1024
_DUPLICATE = re.compile(r'found duplicate key "([\w-]{1,64})" with value ')


def read_yaml(path: Path) -> tuple[dict[str, Any], dict[Location, int]]:
    """Read a file whose top is a mapping.

    Returns:
        The values as plain dictionaries, lists and scalars, and the line (from 1) of each place in them. An empty
        file is an empty mapping.

    Raises:
        ConfigError: The file cannot be read, is not UTF-8, is no YAML, or holds something else than a mapping.
    """
    text = _read_text(path)
    # Pure Python: the C parser has no positions of keys.
    yaml = YAML(typ="rt", pure=True)
    try:
        loaded = cast(object, yaml.load(text))  # pyright: ignore[reportUnknownMemberType]
    except MarkedYAMLError as error:
        raise ConfigError(_describe(path, error)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from error
    if loaded is None:
        return {}, {}
    if not isinstance(loaded, CommentedMap):
        raise ConfigError(f"{path}, line 1: the file must hold sections such as 'knowledgeBase:', not a list or text.")
    lines: dict[Location, int] = {}
    try:
        plain = _plain(loaded, (), 1, lines, path)
    except RecursionError as error:
        raise ConfigError(f"{path} is not valid YAML: an alias stands inside what it names.") from error
    return cast(dict[str, Any], plain), lines


def _read_text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(f"The configuration file {path} does not exist; check --config.") from error
    except OSError as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {error.strerror or error}.") from error
    if len(data) > _MAX_BYTES:
        raise ConfigError(f"The configuration file {path} is larger than 1 MiB; is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8; save the file as UTF-8.") from error


def _describe(path: Path, error: MarkedYAMLError) -> str:
    details = cast(Any, error)
    line = f", line {details.problem_mark.line + 1}" if details.problem_mark is not None else ""
    if isinstance(error, DuplicateKeyError):
        # The library's sentence repeats both values, and one may be a secret.
        named = _DUPLICATE.match(str(details.problem))
        key = f"the key '{named[1]}'" if named else "a key"
        return f"{path}{line}: {key} stands there twice in one section; remove one."
    problem = " ".join(str(details.problem or "not valid YAML").split())
    return f"{path}{line}: {problem}."


def _plain(value: object, at: Location, line: int, lines: dict[Location, int], path: Path) -> object:
    """Copy ``value`` into builtin types and note where everything stands."""
    lines[at] = line
    if isinstance(value, CommentedMap | CommentedSeq) and cast(Any, value).tag.value is not None:
        raise _tagged(path, line)
    if isinstance(value, CommentedMap):
        mapping = cast(Mapping[object, object], value)
        positions = cast(Any, value).lc
        result: dict[str, object] = {}
        for key, item in mapping.items():
            key_line = _line(positions.data, key, line)
            if not isinstance(key, str):
                raise ConfigError(f"{path}, line {key_line}: the key {key!r} is not a text.")
            result[str(key)] = _plain(item, (*at, str(key)), key_line, lines, path)
        return result
    if isinstance(value, CommentedSeq):
        sequence = cast(Sequence[object], value)
        positions = cast(Any, value).lc
        return [
            _plain(item, (*at, index), _line(positions.data, index, line), lines, path)
            for index, item in enumerate(sequence)
        ]
    if isinstance(value, TaggedScalar):
        raise _tagged(path, line)
    # The round-trip loader's scalars are subclasses that remember their spelling.
    for builtin in (bool, int, float, str):
        if isinstance(value, builtin):
            return builtin(value)
    return value


def _tagged(path: Path, line: int) -> ConfigError:
    return ConfigError(f"{path}, line {line}: tags such as '!name' have no meaning here; remove it.")


def _line(positions: Mapping[object, Sequence[int]] | None, key: object, default: int) -> int:
    """The line (from 1) of a key or item; that of the container for what a merge key brought in."""
    if positions is None or key not in positions:
        return default
    return positions[key][0] + 1
