"""One request, read from the bodies of three interfaces."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from scripted import tokens


class BadRequestError(Exception):
    """What SGLang would refuse with status 400."""


@dataclass(kw_only=True)
class Request:
    """What is asked. `top` is the number of alternatives to show with each token; -1 shows no logprobs."""

    path: str
    prompt: str
    ids: list[int]
    stream: bool
    max_tokens: int
    min_tokens: int = 0
    ignore_eos: bool = False
    temperature: float = 1.0
    seed: int | None = None
    stop: list[str] = field(default_factory=list)
    top: int = -1
    prompt_from: int = -1  # first prompt token whose logprob is shown; -1 is none
    texts: bool = True  # of tokens, beside their logprobs
    salt: str = ""
    schema: Any = None
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: Any = "auto"
    messages: list[dict[str, Any]] = field(default_factory=list)
    thinking: bool = False
    echo: bool = False
    include_usage: bool = False
    continuous_usage: bool = False

    @property
    def question(self) -> str:
        """The last words of the user."""
        users = [_content(m) for m in self.messages if m.get("role") == "user"]
        return users[-1] if users else self.prompt


def read(path: str, body: dict[str, Any], context: int) -> Request:
    """From the body of a request to `path`. Raises BadRequestError."""
    request = {"/v1/chat/completions": _chat, "/v1/completions": _completion, "/generate": _generate}[path](
        body
    )
    if not request.ids:
        raise BadRequestError("The prompt is empty")
    if len(request.ids) + request.max_tokens > context:
        raise BadRequestError(
            f"Requested token count exceeds the model's maximum context length of {context} tokens."
        )
    return request


def _chat(body: dict[str, Any]) -> Request:
    messages = body.get("messages") or []
    if not messages:
        raise BadRequestError("Messages cannot be empty.")
    tools = [] if body.get("tool_choice") == "none" else body.get("tools") or []
    prompt = f"<|tools|>{json.dumps(tools, ensure_ascii=False)}\n" if tools else ""
    for message in messages:
        calls = message.get("tool_calls")
        said = json.dumps(calls, ensure_ascii=False) if calls else ""
        prompt += f"<|{message.get('role')}|>{_content(message)}{said}\n"
    template = body.get("chat_template_kwargs") or {}
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 4096
    return _common(
        body,
        path="/v1/chat/completions",
        prompt=prompt + "<|assistant|>",
        max_tokens=limit,
        top=body.get("top_logprobs") or 0 if body.get("logprobs") else -1,
        tools=tools,
        tool_choice=body.get("tool_choice") or "auto",
        messages=messages,
        schema=_schema(body.get("response_format")),
        thinking=template.get("thinking") is True or template.get("enable_thinking") is True,
    )


def _completion(body: dict[str, Any]) -> Request:
    prompt = body.get("prompt") or ""
    if isinstance(prompt, list) and all(isinstance(number, int) for number in prompt):
        prompt = tokens.decode(prompt)
    if not isinstance(prompt, str):
        raise BadRequestError("one prompt at a time: a text or a list of token ids")
    logprobs = body.get("logprobs")
    return _common(
        body,
        path="/v1/completions",
        prompt=prompt,
        max_tokens=body.get("max_tokens", 16),
        top=-1 if logprobs is None else int(logprobs),
        prompt_from=0 if body.get("echo") and logprobs is not None else -1,
        echo=bool(body.get("echo")),
        schema=_schema(body.get("response_format")),
    )


def _generate(body: dict[str, Any]) -> Request:
    sampling = body.get("sampling_params") or {}
    ids = body.get("input_ids")
    prompt = body.get("text") if ids is None else tokens.decode(ids)
    if not isinstance(prompt, str):
        raise BadRequestError("one prompt at a time: text or input_ids")
    schema = sampling.get("json_schema")
    start = body.get("logprob_start_len", -1)
    shown = bool(body.get("return_logprob"))
    request = _common(
        {**body, **sampling},
        path="/generate",
        prompt=prompt,
        max_tokens=sampling.get("max_new_tokens", 128),
        min_tokens=sampling.get("min_new_tokens", 0),
        top=int(body.get("top_logprobs_num") or 0) if shown else -1,
        prompt_from=start if shown else -1,
        texts=bool(body.get("return_text_in_logprobs")),
        schema=json.loads(schema) if isinstance(schema, str) else schema,
        seed=sampling.get("sampling_seed"),
    )
    if ids is not None:
        request.ids = list(ids)  # a text may have been cut otherwise
    if request.prompt_from > len(request.ids):
        raise BadRequestError("logprob_start_len is higher than the number of input tokens")
    return request


def _common(body: dict[str, Any], **fields: Any) -> Request:
    if body.get("n", 1) != 1:
        raise BadRequestError("this engine gives one answer to a request (n = 1)")
    options = body.get("stream_options") or {}
    stop = body.get("stop") or []
    values: dict[str, Any] = {
        "ids": tokens.encode(fields["prompt"]),
        "stream": bool(body.get("stream")),
        "min_tokens": body.get("min_tokens") or 0,
        "ignore_eos": bool(body.get("ignore_eos")),
        "temperature": 1.0 if body.get("temperature") is None else float(body["temperature"]),
        "seed": body.get("seed"),
        "stop": [stop] if isinstance(stop, str) else stop,
        "salt": f"{body.get('cache_salt') or ''}/{body.get('extra_key') or ''}",
        "include_usage": bool(options.get("include_usage")),
        "continuous_usage": bool(options.get("continuous_usage_stats")),
    }
    request = Request(**{**values, **fields})
    if not isinstance(request.max_tokens, int) or request.max_tokens < 0:
        raise BadRequestError("max_new_tokens must be at least 0")
    return request


def _image(part: dict[str, Any]) -> str:
    """A picture is known by its digest: an `answer` can tell one from another."""
    return f"<|image|>{sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]}"


def _schema(response_format: Any) -> Any:
    kind = (response_format or {}).get("type")
    if kind == "json_object":
        return {"type": "object", "properties": {"answer": {"type": "string"}}}
    return response_format["json_schema"]["schema"] if kind == "json_schema" else None


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(part["text"] if "text" in part else _image(part) for part in content)
    return content or ""
