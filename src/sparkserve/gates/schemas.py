"""JSON schemas that nobody has seen before, small enough that any answer that fits one ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

# A thing, and what may be said of it.
_THINGS = {
    "book": ("title", "author", "pages", "year", "lent", "shelf", "language", "topics"),
    "ship": ("name", "port", "length", "crew", "loaded", "flag", "cargo", "captain"),
    "recipe": ("name", "minutes", "servings", "vegan", "course", "oven", "tools", "origin"),
    "order": ("customer", "number", "total", "paid", "status", "items", "city", "discount"),
    "plant": ("name", "height", "age", "edible", "colour", "soil", "months", "region"),
    "trip": ("start", "goal", "days", "cost", "booked", "season", "stops", "guide"),
}
_CHOICES = (("red", "green", "blue"), ("low", "middle", "high"), ("new", "open", "done"), ("north", "south"))


def draw(random: random.Random) -> tuple[str, dict[str, Any]]:
    """A thing to describe, and the schema of its description. Every answer that fits has a last character."""
    thing = random.choice(sorted(_THINGS))
    fields = random.sample(_THINGS[thing], random.randrange(3, 6))
    schema = _object(random, fields)
    if random.random() < 0.5:
        inner = random.sample(_THINGS[random.choice(sorted(_THINGS))], 2)
        schema["properties"]["details"] = _object(random, inner)
        schema["required"].append("details")
    return thing, schema


def _object(random: random.Random, fields: list[str]) -> dict[str, Any]:
    properties = {field: random.choice(_KINDS)(random) for field in fields}
    # All fields, in this order: engines fill them in the order of the schema.
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _string(random: random.Random) -> dict[str, Any]:
    return {"type": "string", "maxLength": random.randrange(8, 25)}


def _integer(random: random.Random) -> dict[str, Any]:
    low = random.randrange(0, 50)
    return {"type": "integer", "minimum": low, "maximum": low + random.randrange(10, 900)}


def _boolean(random: random.Random) -> dict[str, Any]:
    return {"type": "boolean"}


def _choice(random: random.Random) -> dict[str, Any]:
    return {"type": "string", "enum": list(random.choice(_CHOICES))}


def _list(random: random.Random) -> dict[str, Any]:
    least = random.randrange(1, 3)
    item = random.choice((_choice, _integer, _string))(random)
    return {"type": "array", "items": item, "minItems": least, "maxItems": least + random.randrange(0, 3)}


_KINDS: tuple[Callable[[random.Random], dict[str, Any]], ...] = (_string, _integer, _boolean, _choice, _list)
