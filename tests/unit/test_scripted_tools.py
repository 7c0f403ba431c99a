"""The scripted engine's calls, structured answers and reasoning, and that the SDK of OpenAI reads them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import openai
import pytest
import scripted
from scripted import Script
from scripted_values import RIVERS, ask

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "add_numbers",
            "description": "Sum of two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    },
]


def test_structured_answers_fit_their_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "kind": {"enum": ["cat", "dog"]},
            "born": {"type": "string", "format": "date"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 3},
            "mood": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "ok": {"type": "boolean"},
        },
        "required": ["name", "age", "kind", "born", "tags", "ok"],
        "$defs": {"tag": {"type": "string", "maxLength": 4}},
    }
    asked = {"type": "json_schema", "json_schema": {"name": "pet", "schema": schema}}
    for stream in (False, True):
        (reply,) = ask(Script(), "The dog: name is Rex, age 7.", response_format=asked, stream=stream)
        value = json.loads(reply.text)
        jsonschema.validate(value, schema)
        assert (value["name"], value["kind"]) == ("Rex", "dog")
    (reply,) = ask(Script(), RIVERS, response_format={"type": "json_object"})
    assert isinstance(json.loads(reply.text), dict)
    (reply,) = ask(Script(), RIVERS, path="/generate", sampling_params={"json_schema": json.dumps(schema)})
    jsonschema.validate(json.loads(reply.text), schema)


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called_and_their_results_told(stream: bool) -> None:
    def calls(text: str, **body: Any) -> list[tuple[str, Any]]:
        (reply,) = ask(Script(), text, tools=TOOLS, stream=stream, **body)
        assert (reply.error, reply.text) == (None, "") or not reply.tool_calls
        assert reply.finish == ("tool_calls" if reply.tool_calls else "stop")
        assert all(call.id for call in reply.tool_calls)
        return [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]

    paris, rome = {"city": "Paris", "unit": "fahrenheit"}, {"city": "Rome", "unit": "fahrenheit"}
    assert calls("What is the weather in Paris in fahrenheit?") == [("get_weather", paris)]
    assert calls("The weather in Paris and Rome in fahrenheit?") == [
        ("get_weather", paris),
        ("get_weather", rome),
    ]
    assert calls("Add the numbers 3 and 4.5.") == [("add_numbers", {"a": 3, "b": 4.5})]
    assert calls(RIVERS) == []
    assert calls("The weather in Paris?", tool_choice="none") == []
    assert calls(RIVERS, tool_choice="required")[0][0] == "get_weather"
    named = {"type": "function", "function": {"name": "add_numbers"}}
    assert calls(RIVERS, tool_choice=named)[0][0] == "add_numbers"
    call = {"id": "1", "type": "function", "function": {"name": "add_numbers", "arguments": "{}"}}
    told = [
        {"role": "user", "content": "Add the numbers 3 and 4."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "7"},
    ]
    (reply,) = ask(Script(), "", messages=told, tools=TOOLS, stream=stream)
    assert (reply.text, reply.tool_calls) == ("The result is 7.", ())
    known = Script(calls={"rivers": (("add_numbers", '{"a": 1}'), ("get_weather", "{}"))})
    (reply,) = ask(known, RIVERS, tools=TOOLS, stream=stream)
    assert [(c.name, c.arguments) for c in reply.tool_calls] == [
        ("add_numbers", '{"a": 1}'),
        ("get_weather", "{}"),
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_apart(stream: bool) -> None:
    (reply,) = ask(Script(), RIVERS, chat_template_kwargs={"thinking": True}, stream=stream)
    assert reply.reasoning
    assert reply.text
    assert reply.reasoning not in reply.text
    assert ask(Script(), RIVERS, stream=stream)[0].reasoning == ""


def test_openai_reads_it() -> None:
    with scripted.serve(Script(answers={"Hello": "Hi."})) as endpoint:
        client = openai.OpenAI(base_url=f"{endpoint}/v1", api_key="none")
        asked: Any = [{"role": "user", "content": "Hello"}]
        whole = client.chat.completions.create(
            model="scripted", messages=asked, logprobs=True, top_logprobs=2
        )
        assert whole.choices[0].message.content == "Hi."
        assert whole.usage is not None
        assert whole.usage.prompt_tokens_details is not None
        said, usage = "", None
        for event in client.chat.completions.create(
            model="scripted", messages=asked, stream=True, stream_options={"include_usage": True}
        ):
            said += (event.choices[0].delta.content or "") if event.choices else ""
            usage = event.usage or usage
        assert said == "Hi."
        assert usage is not None
        assert usage.completion_tokens == whole.usage.completion_tokens
        tools: Any = TOOLS
        asked = [{"role": "user", "content": "The weather in Paris?"}]
        called = client.chat.completions.create(model="scripted", messages=asked, tools=tools)
        assert called.choices[0].message.tool_calls is not None
        with client.chat.completions.stream(model="scripted", messages=asked, tools=tools) as events:
            final = events.get_final_completion()
        assert final.choices[0].message.tool_calls is not None
        assert final.choices[0].message.tool_calls[0].function.name == "get_weather"
        assert client.completions.create(model="scripted", prompt="Hello").choices[0].text == "Hi."
        assert [model.id for model in client.models.list()] == ["scripted"]
