from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from conftest import Server

from waggle import Question, ToolCall, Waggle, tool
from waggle._schema import schema_of, value_of
from waggle.errors import InvalidInputError
from waggle.sync import Waggle as SyncWaggle


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list[str])


class Options(TypedDict, total=False):
    fast: bool


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (Any, {}),
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
        ),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (Colour, {"enum": ["red", "blue"]}),
        (Options, {"type": "object", "properties": {"fast": {"type": "boolean"}}, "additionalProperties": False}),
        (
            Point,
            {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "y": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "additionalProperties": False,
                "required": ["x"],
            },
        ),
    ],
)
def test_schemas_of_types(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


@pytest.mark.parametrize(
    ("hint", "value", "made"),
    [
        (float, 3, 3.0),
        (Point, {"x": 1}, Point(1)),
        (list[Point], [{"x": 1, "y": 2}], [Point(1, 2.0)]),
        (dict[str, Colour], {"a": "red"}, {"a": Colour.RED}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 1], {1}),
        (Point | None, None, None),
        (Any, [1], [1]),
        (Options, {"fast": True}, {"fast": True}),
    ],
)
def test_arguments_become_values(hint: Any, value: Any, made: Any) -> None:
    found = value_of(hint, value, "p")
    assert found == made
    assert type(found) is type(made)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "1"), (int, True), (str, 1), (bool, 1), (list[int], ["a"]), (list[int], {}), (Point, {"y": 1}), (Point, {"x": 1, "z": 2}),
        (Point, 3), (Colour, "green"), (Literal["a"], "b"), (tuple[int, int], [1]), (int | None, "x"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_refused(hint: Any, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="p"):
        value_of(hint, value, "p")


async def test_a_tool_is_described_by_its_function() -> None:
    @tool
    def paint(colour: Annotated[Colour, "of the page"], size: int = 3, *, call: ToolCall) -> str:
        """Paint the page."""
        return f"{colour.value} {size} {call.id}"

    assert (paint.name, paint.description) == ("paint", "Paint the page.")
    assert paint.input_schema == {
        "type": "object",
        "properties": {
            "colour": {"enum": ["red", "blue"], "description": "of the page"},
            "size": {"type": "integer", "default": 3},
        },
        "additionalProperties": False,
        "required": ["colour"],
    }
    call = ToolCall("c", {})
    assert await paint.run({"colour": "red"}, call) == paint(Colour.RED, call=call) == "red 3 c"
    for wrong in ({}, {"colour": "red", "depth": 1}, {"colour": "red", "size": "x"}):
        with pytest.raises(InvalidInputError):
            await paint.run(wrong, call)

    @tool(name="locate", description="Finds it.")
    async def find() -> Point:
        return Point(1)

    assert await find.run({}, call) == {"x": 1, "y": 0.5, "tags": []}
    assert (find.name, find.description) == ("locate", "Finds it.")

    def many(*colours: str) -> None: ...

    with pytest.raises(TypeError, match="ordinary parameters"):
        tool(many)


async def test_the_model_calls_functions_of_the_program(server: Server) -> None:
    def paint(colour: Colour) -> dict[str, str]:
        """Paint the page."""
        return {"painted": colour.value}

    async def explode() -> None:
        """Fail."""
        raise ValueError("it is too hot")

    async with Waggle(server.url) as w:
        s = w.session()
        asked: list[Question] = []
        s.on_questions(asked.extend)
        run = s.send('use paint {"colour": "red"}', tools=[paint, explode])
        assert [q async for q in run.questions()] == []
        assert '{"painted": "red"}' in (await run.result()).text
        refused = await s.send('use paint {"colour": "green"}', tools=[paint]).result()
        assert "must be one of" in refused.text
        assert "it is too hot" in (await s.send("use explode {}", tools=[explode]).result()).text
        assert asked == []  # people are not asked
        assert not s.questions


def test_the_facade_offers_functions_too(server: Server) -> None:
    with SyncWaggle(server.url) as w:
        answer = w.session().send('use add {"a": 2, "b": 3}', tools=[tool(lambda_add)]).result()
        assert "5" in answer.text


def lambda_add(a: int, b: int) -> int:
    """Add."""
    return a + b


lambda_add.__name__ = "add"
