"""JSON Schemas of functions, from their type hints."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, cast, get_args, get_origin

from ._errors import error_of

Schema = dict[str, Any]

_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    list: {"type": "array"},
    dict: {"type": "object"},
}


class Signature:
    """The parameters of a function: their schema, and how arguments become values."""

    def __init__(self, f: Callable[..., Any], skip: Callable[[str, Any], bool]) -> None:
        hints = typing.get_type_hints(f, include_extras=True)
        self.hints: dict[str, Any] = {}
        self.required: list[str] = []
        self.context: str | None = None
        """The parameter that takes the context of the call."""
        properties: Schema = {}
        for name, p in inspect.signature(f).parameters.items():
            hint = hints.get(name, Any)
            if skip(name, hint):
                self.context = name
                continue
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
                raise TypeError(f"{f.__name__}: parameter {name} has no name for the model: use ordinary parameters")
            self.hints[name] = hint
            properties[name] = schema_of(hint)
            if p.default is inspect.Parameter.empty:
                self.required.append(name)
            elif isinstance(p.default, (str, int, float, bool)):
                properties[name] = {**properties[name], "default": p.default}
        self.schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.required:
            self.schema["required"] = self.required
        self.result = hints.get("return", Any)

    def bind(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of arguments. Raises InvalidInputError for what does not fit."""
        missing = [n for n in self.required if n not in arguments]
        unknown = [n for n in arguments if n not in self.hints]
        if missing or unknown:
            faults = [f"{', '.join(missing)} missing"] * bool(missing) + [f"{', '.join(unknown)} unknown"] * bool(
                unknown
            )
            raise error_of("INVALID_INPUT", "; ".join(faults))
        return {n: value_of(self.hints[n], v, n) for n, v in arguments.items()}


def schema_of(hint: Any) -> Schema:
    """Return the JSON Schema of a type."""
    try:
        return dict(_SIMPLE[hint])
    except (KeyError, TypeError):
        pass
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        found = schema_of(args[0])
        notes = [a for a in args[1:] if isinstance(a, str)]
        return {**found, "description": " ".join(notes)} if notes else found
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(a) for a in args]}
    if origin is tuple and args and args[-1] is not Ellipsis:
        return {
            "type": "array",
            "prefixItems": [schema_of(a) for a in args],
            "minItems": len(args),
            "maxItems": len(args),
        }
    if origin in (list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.Iterable):
        return {"type": "array", "items": schema_of(args[0] if args else Any)}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object", "additionalProperties": schema_of(args[1])}
    if isinstance(hint, type):
        return _schema_of_class(cast("type[Any]", hint))
    raise TypeError(f"no JSON Schema is known for {hint!r}")


def _schema_of_class(c: type[Any]) -> Schema:
    if hasattr(c, "model_json_schema"):  # of pydantic
        return c.model_json_schema()
    if issubclass(c, enum.Enum):
        return {"enum": [m.value for m in c]}
    if dataclasses.is_dataclass(c):
        hints = typing.get_type_hints(c, include_extras=True)
        fields = dataclasses.fields(c)
        none = dataclasses.MISSING
        required = [f.name for f in fields if f.default is none and f.default_factory is none]
        return _object({f.name: hints[f.name] for f in fields}, required)
    if typing.is_typeddict(c):
        keys: frozenset[str] = c.__required_keys__
        hints = typing.get_type_hints(c)
        return _object(hints, [n for n in hints if n in keys])
    raise TypeError(f"no JSON Schema is known for {c!r}")


def _object(hints: Mapping[str, Any], required: list[str]) -> Schema:
    found: Schema = {
        "type": "object",
        "properties": {n: schema_of(h) for n, h in hints.items()},
        "additionalProperties": False,
    }
    return {**found, "required": required} if required else found


def value_of(hint: Any, value: Any, place: str) -> Any:
    """Return a value of JSON as the type has it: dataclasses, enums and models of pydantic are made, simple types checked."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return value_of(args[0], value, place)
    if origin in (Union, types.UnionType):
        return _one_of(args, value, place)
    if origin in (list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.Iterable):
        return _list_of(origin, args, value, place)
    if origin in (dict, collections.abc.Mapping) and isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {n: value_of(args[1], v, f"{place}.{n}") for n, v in entries.items()}
    if origin is Literal and value not in args:
        raise _unfit(place, value, hint)
    if not isinstance(hint, type) or hint in (Any, object):
        return value
    return _instance_of(cast("type[Any]", hint), value, place)


def _one_of(hints: tuple[Any, ...], value: Any, place: str) -> Any:
    for hint in hints:
        try:
            return value_of(hint, value, place)
        except Exception:
            continue
    raise _unfit(place, value, " | ".join(map(str, hints)))


def _list_of(origin: Any, args: tuple[Any, ...], value: Any, place: str) -> Any:
    if not isinstance(value, list):
        raise _unfit(place, value, origin)
    entries = cast("list[Any]", value)
    fixed = origin is tuple and args and args[-1] is not Ellipsis
    if fixed and len(entries) != len(args):
        raise _unfit(place, entries, origin)
    hints = args if fixed else (args[0] if args else Any,) * len(entries)
    found = [value_of(h, v, f"{place}[{i}]") for i, (h, v) in enumerate(zip(hints, entries, strict=True))]
    return cast("Any", origin)(found) if origin in (set, frozenset, tuple) else found


def _instance_of(c: type[Any], value: Any, place: str) -> Any:
    if hasattr(c, "model_validate"):
        try:
            return cast("Any", c).model_validate(value)
        except ValueError as error:
            raise error_of("INVALID_INPUT", f"{place}: {error}", field=place) from error
    if issubclass(c, enum.Enum):
        try:
            return c(value)
        except ValueError:
            raise _unfit(place, value, c) from None
    if dataclasses.is_dataclass(c):
        return _fields_of(c, value, place)
    if typing.is_typeddict(c):
        c = dict
    if c is float and type(value) is int:
        return float(value)
    if c in _SIMPLE and (not isinstance(value, c) or (isinstance(value, bool) and c is not bool)):
        raise _unfit(place, value, c)
    return value


def _fields_of(c: type[Any], value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise _unfit(place, value, c)
    hints = typing.get_type_hints(c, include_extras=True)
    members = cast("dict[str, Any]", value)
    try:
        return c(**{n: value_of(hints[n], v, f"{place}.{n}") for n, v in members.items()})
    except (KeyError, TypeError):
        raise _unfit(place, members, c) from None


def _unfit(place: str, value: Any, hint: Any) -> Exception:
    name = getattr(hint, "__name__", str(hint))
    return error_of("INVALID_INPUT", f"{place}: {value!r} does not fit {name}"[:500], field=place)
