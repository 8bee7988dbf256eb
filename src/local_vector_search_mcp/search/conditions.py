"""Conditions on front matter: ``{"status": "draft", "date": {"$gte": "2026-01-01"}}``. Pure.

All conditions must hold. Values of different types never compare: a number is no string, ``true`` is no number. On a
list ``$eq`` and ``$in`` match any item. A missing key matches ``$ne``, ``$nin`` and ``$exists: false`` only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias, TypeGuard, assert_never, cast

from local_vector_search_mcp.errors import InvalidArgument

Json: TypeAlias = Any
"""A value of decoded JSON."""

_MAX_CONDITIONS = 100


class Operator(StrEnum):
    """How a value is compared."""

    EQ = "$eq"
    NE = "$ne"
    IN = "$in"
    NIN = "$nin"
    GT = "$gt"
    GTE = "$gte"
    LT = "$lt"
    LTE = "$lte"
    EXISTS = "$exists"
    CONTAINS = "$contains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison of the value under a key, which may be dotted."""

    key: str
    operator: Operator
    operand: Json

    def holds(self, metadata: Mapping[str, Json]) -> bool:
        """Whether a document with this front matter satisfies it."""
        values = list(_values(metadata, self.key))
        if self.operator is Operator.EXISTS:
            return bool(values) is self.operand
        if not values:
            return self.operator in (Operator.NE, Operator.NIN)
        if self.operator in (Operator.NE, Operator.NIN):
            opposite = Operator.EQ if self.operator is Operator.NE else Operator.IN
            return not any(_compare(value, opposite, self.operand) for value in values)
        return any(_compare(value, self.operator, self.operand) for value in values)


def parse_where(where: Mapping[str, Json] | None) -> tuple[Condition, ...]:
    """The conditions of a ``where`` argument.

    Raises:
        InvalidArgument: An unknown operator, or an operand that its operator cannot compare with.
    """
    found: list[Condition] = []
    for key, value in (where or {}).items():
        if not key:
            raise InvalidArgument("where has an empty key; name a front matter key, such as status.")
        if key.startswith("$"):
            raise InvalidArgument(
                f"where has the unknown operator {key!r} in place of a front matter key; all conditions must hold, and "
                'operators stand inside a key, such as {"status": {"$in": ["draft", "final"]}}.'
            )
        found += _conditions_of(key, value)
    if len(found) > _MAX_CONDITIONS:
        raise InvalidArgument(f"where has more than {_MAX_CONDITIONS} conditions; use fewer.")
    return tuple(found)


def all_hold(conditions: Sequence[Condition], metadata: Mapping[str, Json]) -> bool:
    """Whether a document with this front matter satisfies every condition."""
    return all(condition.holds(metadata) for condition in conditions)


def _conditions_of(key: str, value: Json) -> Iterator[Condition]:
    if not isinstance(value, Mapping):
        yield Condition(key=key, operator=Operator.EQ, operand=value)
        return
    operators = cast(Mapping[str, Json], value)
    if not operators:
        raise InvalidArgument(f"where.{key} is an empty object; give a value or an operator such as $eq.")
    for name, operand in operators.items():
        if name not in tuple(Operator):
            known = ", ".join(Operator)
            raise InvalidArgument(f"where.{key} has the unknown operator {name!r}; known are {known}.")
        operator = Operator(name)
        _check_operand(key, operator, operand)
        yield Condition(key=key, operator=operator, operand=operand)


def _check_operand(key: str, operator: Operator, operand: Json) -> None:
    match operator:
        case Operator.IN | Operator.NIN:
            if not isinstance(operand, list):
                raise InvalidArgument(f"where.{key}.{operator} needs a list of values.")
        case Operator.EXISTS:
            if not isinstance(operand, bool):
                raise InvalidArgument(f"where.{key}.{operator} needs true or false.")
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            if isinstance(operand, bool) or not isinstance(operand, str | int | float):
                raise InvalidArgument(f"where.{key}.{operator} needs a number, a text or an ISO date.")
        case Operator.EQ | Operator.NE | Operator.CONTAINS:
            if isinstance(operand, Mapping):
                raise InvalidArgument(f"where.{key}.{operator} cannot compare with an object; use a dotted key.")
        case _:
            assert_never(operator)


def _values(value: Json, key: str) -> Iterator[Json]:
    """What stands under a key: the key as it is, else its dotted parts; through lists to each of their items."""
    if _is_list(value):
        for item in value:
            if isinstance(item, Mapping | list):
                yield from _values(item, key)
        return
    if not isinstance(value, Mapping):
        return
    here = cast(Mapping[str, Json], value)
    if key in here:
        yield here[key]
        return
    # A key may have dots of its own; the shortest that fits is taken. The one asked for may be of any length.
    first = min((name for name in here if key.startswith(f"{name}.")), key=len, default=None)
    if first is not None:
        yield from _values(here[first], key[len(first) + 1 :])


def _compare(value: Json, operator: Operator, operand: Json) -> bool:
    match operator:
        case Operator.EQ:
            return _equal_or_item(value, operand)
        case Operator.IN:
            return any(_equal_or_item(value, one) for one in operand)
        case Operator.CONTAINS:
            if isinstance(value, str):
                return isinstance(operand, str) and operand in value
            return _is_list(value) and any(_equal(item, operand) for item in value)
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            return _comparable(value, operand) and _ordered(value, operator, operand)
        case Operator.NE | Operator.NIN | Operator.EXISTS:
            raise ValueError(f"{operator} is decided by its opposite")
        case _:
            assert_never(operator)


def _equal_or_item(value: Json, operand: Json) -> bool:
    if _equal(value, operand):
        return True
    return _is_list(value) and any(_equal(item, operand) for item in value)


def _equal(first: Json, second: Json) -> bool:
    return _type_of(first) == _type_of(second) and bool(first == second)


def _comparable(first: Json, second: Json) -> bool:
    return _type_of(first) == _type_of(second) and _type_of(first) in ("number", "text")


def _ordered(value: Json, operator: Operator, operand: Json) -> bool:
    if operator is Operator.GT:
        return bool(value > operand)
    if operator is Operator.GTE:
        return bool(value >= operand)
    if operator is Operator.LT:
        return bool(value < operand)
    return bool(value <= operand)


def _is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def _type_of(value: Json) -> str:
    # In Python True is a number; in JSON it is not.
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__
