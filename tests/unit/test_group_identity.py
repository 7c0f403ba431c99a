"""What a rank runs in place of what the head runs, in words."""

from __future__ import annotations

from typing import Any

import pytest
from engine_values import closure
from group_values import plan

from sparkserve.group.identity import difference, identity

DIGEST = "sha256:" + "1" * 64


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"one": None}, None),
        ({"one": {}}, "timeout_s of adapter one: none, the head 30"),
        ({"one": {"timeout_s": 31}}, "timeout_s of adapter one: 31, the head 30"),
        ({"two": {}}, "adapter two: on, the head none"),
        ({"layer": DIGEST}, "layer {name} of the engine root: sha256:111111111111, the head "),
        ({"more": DIGEST}, "layer more of the engine root: sha256:111111111111, the head none"),
        ({"root": DIGEST}, "engine root: sha256:111111111111, the head "),
        ({"harness": DIGEST}, "harness: sha256:111111111111, the head "),
        ({"fleet_id": "2" * 64}, "fleet id: 2222222222222222222, the head "),
    ],
)
def test_the_first_difference_is_named(changes: dict[str, Any], words: str | None) -> None:
    head, engine = plan(0, 20000), closure()
    theirs, root = plan(2, 20000), engine.root
    (what, value), *_ = changes.items()
    if what == "one" and value is not None:
        adapter = theirs.adapters[0].model_copy(update={"settings": value})
        theirs = theirs.model_copy(update={"adapters": (adapter,)})
    elif what == "two":
        other = theirs.adapters[0].model_copy(update={"name": "two", "settings": value})
        theirs = theirs.model_copy(update={"adapters": (*theirs.adapters, other)})
    elif what == "layer":
        layers = (root.layers[0].model_copy(update={"diff_id": value}), *root.layers[1:])
        root = root.model_copy(update={"layers": layers, "digest": value})
    elif what == "more":
        more = root.layers[0].model_copy(update={"name": "more", "diff_id": value})
        root = root.model_copy(update={"layers": (*root.layers, more), "digest": value})
    elif what == "root":
        root = root.model_copy(update={"digest": value})
    update: dict[str, Any] = {"root": root}
    if what == "harness":
        update["harness"] = engine.harness.model_copy(update={"digest": value})
    if what == "fleet_id":
        update["fleet_id"] = value
    found = difference(identity(theirs, engine.model_copy(update=update)), identity(head, engine))
    if words is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(words.format(name=root.layers[0].name))
