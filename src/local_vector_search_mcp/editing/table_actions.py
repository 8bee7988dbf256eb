"""Table actions as a closed union of values, and how they are read from a call's arguments."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from local_vector_search_mcp.editing.cell_text import ValueFormat
from local_vector_search_mcp.errors import InvalidArgument
from local_vector_search_mcp.markdown.table_rows import Alignment

MAX_UPDATES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRef:
    """A column by its name or by its index; exactly one of the two."""

    name: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRef:
    """A data row by its index, or by what one of its cells shows; exactly one of the two."""

    index: int | None = None
    column: str | None = None
    equals: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellUpdate:
    """A new value of one cell."""

    row: RowRef
    column: ColumnRef
    value: str
    value_format: ValueFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCells:
    """Give cells new values."""

    updates: tuple[CellUpdate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRow:
    """Add a data row; ``at`` is its index, None at the end."""

    values: Mapping[str, str] | tuple[str, ...]
    at: int | None
    value_format: ValueFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRow:
    """Remove a data row."""

    row: RowRef


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertColumn:
    """Add a column; ``before`` is the column that it goes before, None at the end."""

    name: str
    before: ColumnRef | None
    default: str
    alignment: Alignment
    value_format: ValueFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteColumn:
    """Remove a column."""

    column: ColumnRef


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """Give a column another header."""

    column: ColumnRef
    name: str
    value_format: ValueFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAlignment:
    """Align a column."""

    column: ColumnRef
    alignment: Alignment


@dataclass(frozen=True, slots=True, kw_only=True)
class SortRows:
    """Put the data rows in order by one column; stable."""

    column: ColumnRef
    descending: bool
    numeric: bool


TableAction = UpdateCells | InsertRow | DeleteRow | InsertColumn | DeleteColumn | RenameColumn | SetAlignment | SortRows

_COLUMN = frozenset({"column", "columnIndex"})
ACTIONS: Mapping[str, frozenset[str]] = {
    "update_cells": frozenset({"updates", "valueFormat"}),
    "insert_row": frozenset({"values", "rowIndex", "valueFormat"}),
    "delete_row": frozenset({"where", "rowIndex"}),
    "insert_column": frozenset({"name", "columnIndex", "beforeColumn", "default", "alignment", "valueFormat"}),
    "delete_column": _COLUMN,
    "rename_column": _COLUMN | {"name", "valueFormat"},
    "set_alignment": _COLUMN | {"alignment"},
    "sort_rows": _COLUMN | {"order", "numeric"},
}
"""Every action with the arguments that it takes."""

_ALIASES: Mapping[str, Mapping[str, str]] = {
    "insert_row": {"valuesByColumn": "values", "beforeRowIndex": "rowIndex"},
    "insert_column": {"newName": "name", "defaultValue": "default", "beforeColumnIndex": "columnIndex"},
    "rename_column": {"newName": "name"},
}


def read_action(action: str, arguments: Mapping[str, object]) -> TableAction:
    """The action of a call.

    Args:
        action: Its name.
        arguments: Its arguments by their names on the wire; None counts as absent.

    Raises:
        InvalidArgument: The action is unknown; an argument is missing, contradicting, of another action or of
            the wrong type.
    """
    if action not in ACTIONS:
        raise InvalidArgument(f"There is no action {action!r}; give one of {', '.join(ACTIONS)}.")
    given = _canonical(action, arguments)
    value_format = _value_format(given.get("valueFormat"))
    match action:
        case "update_cells":
            return UpdateCells(updates=_updates(given.get("updates"), value_format))
        case "insert_row":
            at = _index(given, "rowIndex")
            return InsertRow(values=_values(given.get("values")), at=at, value_format=value_format)
        case "delete_row":
            return DeleteRow(row=_row(given, action))
        case "insert_column":
            return InsertColumn(
                name=_text(given, "name", action),
                before=_before(given),
                default=_scalar(given.get("default", ""), "default"),
                alignment=_alignment(given.get("alignment", Alignment.NONE.value)),
                value_format=value_format,
            )
        case "delete_column":
            return DeleteColumn(column=_column(given, action))
        case "rename_column":
            name = _text(given, "name", action)
            return RenameColumn(column=_column(given, action), name=name, value_format=value_format)
        case "set_alignment":
            if "alignment" not in given:
                raise InvalidArgument("set_alignment needs alignment: none, left, center or right.")
            return SetAlignment(column=_column(given, action), alignment=_alignment(given["alignment"]))
        case _:
            descending = _order(given.get("order", "asc"))
            return SortRows(
                column=_column(given, action), descending=descending, numeric=_flag(given.get("numeric", False))
            )


def _canonical(action: str, arguments: Mapping[str, object]) -> dict[str, object]:
    aliases = _ALIASES.get(action, {})
    given: dict[str, object] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        canonical = aliases.get(name, name)
        if canonical not in ACTIONS[action]:
            takes = ", ".join(sorted(ACTIONS[action]))
            raise InvalidArgument(f"{action} takes no {name}; it takes {takes}.")
        if canonical in given:
            raise InvalidArgument(f"{canonical} is given twice, once by another name; give it once.")
        given[canonical] = value
    return given


def _updates(value: object, value_format: ValueFormat) -> tuple[CellUpdate, ...]:
    items = cast("Sequence[object]", value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if not 1 <= len(items) <= MAX_UPDATES:
        raise InvalidArgument(f"update_cells needs updates: an array of 1 to {MAX_UPDATES} objects.")
    updates: list[CellUpdate] = []
    for number, item in enumerate(items):
        what = f"updates[{number}]"
        fields = _object(item, what, {"where", "rowIndex", "column", "columnIndex", "value", "valueFormat"})
        if "value" not in fields:
            raise InvalidArgument(f"{what} needs a value.")
        own_format = _value_format(fields["valueFormat"]) if "valueFormat" in fields else value_format
        updates.append(
            CellUpdate(
                row=_row(fields, what),
                column=_column(fields, what),
                value=_scalar(fields["value"], f"{what}.value"),
                value_format=own_format,
            )
        )
    return tuple(updates)


def _object(value: object, what: str, allowed: set[str]) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"{what} must be an object.")
    given = cast("Mapping[object, object]", value)
    fields = {str(name): item for name, item in given.items() if item is not None}
    for name in fields:
        if name not in allowed:
            raise InvalidArgument(f"{what} takes no {name}; it takes {', '.join(sorted(allowed))}.")
    return fields


def _row(fields: Mapping[str, object], what: str) -> RowRef:
    if ("where" in fields) == ("rowIndex" in fields):
        raise InvalidArgument(f"{what} needs either where or rowIndex, and not both.")
    if "where" not in fields:
        return RowRef(index=_index(fields, "rowIndex"))
    where = _object(fields["where"], "where", {"column", "equals"})
    if "column" not in where or "equals" not in where:
        raise InvalidArgument('where needs both fields: { "column": name, "equals": value }.')
    return RowRef(column=_scalar(where["column"], "where.column"), equals=_scalar(where["equals"], "where.equals"))


def _column(fields: Mapping[str, object], what: str) -> ColumnRef:
    if ("column" in fields) == ("columnIndex" in fields):
        raise InvalidArgument(f"{what} needs either column (a name) or columnIndex, and not both.")
    if "column" in fields:
        return ColumnRef(name=_scalar(fields["column"], "column"))
    return ColumnRef(index=_index(fields, "columnIndex"))


def _before(fields: Mapping[str, object]) -> ColumnRef | None:
    if "beforeColumn" in fields:
        if "columnIndex" in fields:
            raise InvalidArgument("insert_column takes either columnIndex or beforeColumn, not both.")
        return ColumnRef(name=_scalar(fields["beforeColumn"], "beforeColumn"))
    return ColumnRef(index=_index(fields, "columnIndex")) if "columnIndex" in fields else None


def _values(value: object) -> Mapping[str, str] | tuple[str, ...]:
    if isinstance(value, Mapping):
        named = cast("Mapping[object, object]", value)
        return {str(name): _scalar(item, f"values[{name!r}]") for name, item in named.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        ordered = cast("Sequence[object]", value)
        return tuple(_scalar(item, f"values[{number}]") for number, item in enumerate(ordered))
    raise InvalidArgument("insert_row needs values: an object by column name, or an array in column order.")


def _scalar(value: object, what: str) -> str:
    """A cell value as text; numbers and booleans are their JSON text, null is empty."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise InvalidArgument(f"{what} must be a string, a number or a boolean.")


def _text(fields: Mapping[str, object], name: str, action: str) -> str:
    if name not in fields:
        raise InvalidArgument(f"{action} needs {name}.")
    return _scalar(fields[name], name)


def _index(fields: Mapping[str, object], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidArgument(f"{name} must be an integer of 0 or more.")
    return value


def _value_format(value: object) -> ValueFormat:
    if value is None or value == "text":
        return ValueFormat.LITERAL
    try:
        return ValueFormat(str(value))
    except ValueError as error:
        raise InvalidArgument("valueFormat must be literal or markdown.") from error


def _alignment(value: object) -> Alignment:
    try:
        return Alignment(str(value))
    except ValueError as error:
        raise InvalidArgument("alignment must be none, left, center or right.") from error


def _order(value: object) -> bool:
    if value not in ("asc", "desc"):
        raise InvalidArgument("order must be asc or desc.")
    return value == "desc"


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument("numeric must be true or false.")
    return value
