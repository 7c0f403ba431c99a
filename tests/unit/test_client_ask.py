"""What the client makes of answers: whole, streamed, of each path, cut anywhere."""

from __future__ import annotations

import json

import pytest
from client_world import CHAT, SSE, asked, chunked, delta, stream, whole

from sparkserve.client.reply import ToolCall, Usage

USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 5, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}},
}
TALK = (
    delta(role="assistant", content=""),
    delta(1, reasoning_content="Hm. "),
    delta(2, content="Grüße"),
    delta(4, content=" an 世界."),
    delta(4, finish="stop"),
    USAGE,
)


def test_a_streamed_chat() -> None:
    reply = asked(stream(*TALK), stream=True)
    assert (reply.status, reply.error, reply.finish) == (200, None, "stop")
    assert (reply.text, reply.reasoning) == ("Grüße an 世界.", "Hm. ")
    assert reply.usage == Usage(5, 4, 3)
    assert [(a.text, a.tokens) for a in reply.arrivals] == [("Hm. ", 1), ("Grüße", 2), (" an 世界.", 4)]
    assert reply.first is not None
    assert 0 < reply.first <= reply.arrivals[-1].at <= reply.seconds


@pytest.mark.parametrize("path", ["bytes", "events"])
def test_the_same_however_it_is_cut(path: str) -> None:
    events = b"".join(b"data: %b\r\n\r\n" % json.dumps(e, ensure_ascii=False).encode() for e in TALK)
    events += b"data: [DONE]\r\n\r\n"
    pieces = [events] if path == "events" else [events[i : i + 1] for i in range(len(events))]
    reply = asked(SSE + b"".join(chunked(piece) for piece in pieces) + b"0\r\n\r\n", stream=True)
    assert (reply.error, reply.text, reply.usage) == (None, "Grüße an 世界.", Usage(5, 4, 3))
    assert [a.tokens for a in reply.arrivals] == [1, 2, 4]


def test_calls_of_tools_are_merged_by_index() -> None:
    def call(index: int, arguments: str, **fields: str) -> dict[str, object]:
        name = fields.pop("name", None)
        return {"index": index, **fields, "function": {"name": name, "arguments": arguments}}

    reply = asked(
        stream(
            delta(2, tool_calls=[call(0, "", id="call_a", name="weather")]),
            delta(3, tool_calls=[call(0, '{"city": ')]),
            delta(4, tool_calls=[call(1, '{"x"', id="call_b", name="add")]),
            delta(5, tool_calls=[call(0, '"Paris"}'), call(1, ": 1}")]),
            delta(5, finish="tool_calls"),
        ),
        stream=True,
    )
    assert reply.tool_calls == (
        ToolCall("call_a", "weather", '{"city": "Paris"}'),
        ToolCall("call_b", "add", '{"x": 1}'),
    )
    assert reply.finish == "tool_calls"
    assert [a.tokens for a in reply.arrivals] == [2, 3, 4, 5]


def test_a_whole_chat() -> None:
    message = {
        "content": "Hi",
        "reasoning_content": "So.",
        "tool_calls": [{"id": "1", "index": None, "function": {"name": "f", "arguments": "{}"}}] * 2,
    }
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **USAGE}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    reply = asked(whole(body))
    assert (reply.error, reply.text, reply.reasoning, reply.finish) == (None, "Hi", "So.", "stop")
    assert reply.tool_calls == (ToolCall("1", "f", "{}"),) * 2
    assert reply.usage == Usage(5, 4, 3)
    assert reply.body == body
    assert reply.arrivals == ()


def test_completions() -> None:
    def part(text: str, finish: str | None = None) -> dict[str, object]:
        return {"choices": [{"index": 0, "text": text, "finish_reason": finish}]}

    reply = asked(stream(part("one"), part(" two", "length"), USAGE), "/v1/completions", stream=True)
    assert (reply.error, reply.text, reply.finish, reply.usage) == (None, "one two", "length", Usage(5, 4, 3))
    assert [a.tokens for a in reply.arrivals] == [None, None]
    reply = asked(whole({**part("one", "stop"), "usage": USAGE["usage"]}), "/v1/completions")
    assert (reply.error, reply.text, reply.usage) == (None, "one", Usage(5, 4, 3))


def test_generate_repeats_its_text() -> None:
    def part(text: str, tokens: int, finish: object = None) -> dict[str, object]:
        meta = {"prompt_tokens": 5, "completion_tokens": tokens, "cached_tokens": 2, "finish_reason": finish}
        return {"text": text, "output_ids": [1] * tokens, "meta_info": meta}

    end = part("one two!", 3, {"type": "length", "length": 3})
    reply = asked(stream(part("one", 1), part("one two", 2), end), "/generate", stream=True)
    assert (reply.error, reply.text, reply.finish, reply.usage) == (
        None,
        "one two!",
        "length",
        Usage(5, 3, 2),
    )
    assert [(a.text, a.tokens) for a in reply.arrivals] == [("one", 1), (" two", 2), ("!", 3)]
    reply = asked(whole(end), "/generate")
    assert (reply.error, reply.text, reply.finish, reply.body) == (None, "one two!", "length", end)


def test_the_first_choice_counts() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "stop"}]}
    reply = asked(stream(delta(content="a"), other, delta(content="b", finish="stop")), stream=True)
    assert (reply.error, reply.text) == (None, "ab")


def test_other_paths_bring_their_body() -> None:
    assert asked(whole({"tokens": [1, 2]}), "/tokenize").body == {"tokens": [1, 2]}
    reply = asked(whole(b"Cache flushed.\n", content_type="text/plain"), "/flush_cache")
    assert (reply.error, reply.body) == (None, "Cache flushed.\n")


def test_a_stream_without_length_ends_with_the_connection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    events = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps(delta(content="x", finish="stop")).encode()
    reply = asked([head + events, b"close"], CHAT, stream=True)
    assert (reply.error, reply.text) == (None, "x")
