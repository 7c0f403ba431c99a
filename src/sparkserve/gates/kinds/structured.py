"""structured: answers to random JSON schemas parse, fit and end by themselves, whole and streamed alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sparkserve.gates import schemas
from sparkserve.gates.asking import Asker, randomness
from sparkserve.gates.contract import Outcome

if TYPE_CHECKING:
    from sparkserve.client.reply import Reply
    from sparkserve.gates.contract import Context

title = "Answers to random JSON schemas parse, fit and end by themselves, whole and streamed alike."
needs = "response_format json_schema (SGLang: --grammar-backend)"
cost_s = (20, 120)

SCHEMAS = (2, 12)
TOKENS = 384  # the longest answer to one of these schemas has some 200


async def run(context: Context) -> Outcome:
    """Ask for each schema twice."""
    random = randomness(context, "structured")
    asked = [schemas.draw(random) for _ in range(SCHEMAS[not context.quick])]
    asker = Asker(context, 2 * len(asked))
    findings, answers = [], []
    for number, (thing, schema) in enumerate(asked, 1):
        prompt = f"Describe a {thing} as JSON. The fields are {', '.join(schema['properties'])}."
        form = {"type": "json_schema", "json_schema": {"name": thing, "schema": schema, "strict": True}}
        whole = await asker.chat(prompt, TOKENS, response_format=form)
        streamed = await asker.chat(prompt, TOKENS, response_format=form, stream=True)
        answers.append(whole.text)
        found = {way: wrong(reply, schema) for way, reply in (("whole", whole), ("streamed", streamed))}
        findings += [f"schema {number}, {way}: {words}" for way, words in found.items() if words]
        if not any(found.values()) and streamed.text != whole.text:
            findings.append(f"schema {number}: streamed {streamed.text!r} is not the whole {whole.text!r}")
    return Outcome(
        passed=not findings,
        summary=f"{len(asked)} schemas, whole and streamed: {len(findings) or 'nothing'} wrong",
        measured={"wrong": len(findings)},
        limits={"wrong": 0},
        findings=tuple(findings),
        prompts=asker.prompts,
        details={"schemas": [schema for _, schema in asked], "answers": answers},
    )


def wrong(reply: Reply, schema: dict[str, Any]) -> str | None:
    """What keeps a reply from being an answer to `schema`; None when it is one."""
    from jsonschema import Draft202012Validator

    if reply.error is not None:
        return reply.error
    if reply.finish != "stop":
        return f"it ended by {reply.finish}: {reply.text[-80:]!r}"
    try:
        value = json.loads(reply.text)
    except (ValueError, RecursionError) as error:
        return f"no JSON ({error}): {reply.text[:80]!r}"
    found = next(iter(Draft202012Validator(schema).iter_errors(value)), None)
    return None if found is None else f"{found.json_path}: {found.message}"
