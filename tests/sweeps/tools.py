"""Calls that are not whole, and markup in the text."""

import json

from sparkserve.gates import toolbox

_NOTE = {"title": "Log", "body": toolbox.HARD, "meta": {"tags": ["a b", "ü"], "pinned": True}}
CLEAN: dict[str, object] = {
    "calls": {
        "harbour is Ulvik and hour is 7?": (("tide_level", '{"harbour": "Ulvik", "hour": 7}'),),
        "harbours Halden and Moss.": tuple(
            ("tide_level", json.dumps({"harbour": name, "hour": 9})) for name in ("Halden", "Moss")
        ),
        "word between the lines": (("save_note", json.dumps(_NOTE)),),
        "harbour is Voss": (("tide_level", '{"harbour": "Voss", "hour": 3}'),),
        "Say anything.": (("save_note", json.dumps(_NOTE)),),
    },
    "answers": {"Greet me": "Good morning!", "417 cm": "The water stands at 417 cm."},
}
FAULTS = {
    "share s of the calls lacks its last character": [
        (f"{s:g}", {"break_call": True, "share": s}) for s in (0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
    ],
    "each n-th answer loses an event of its stream": [
        (f"{n}", {"drop": "event", "drop_every": n}) for n in (12, 8, 6, 4, 2)
    ],
    "share s of the texts has a tag of a call": [
        (f"{s:g}", {"leak": "tool", "share": s}) for s in (0.2, 0.4, 0.6, 0.8, 1.0)
    ],
}
