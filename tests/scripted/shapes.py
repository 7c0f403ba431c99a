"""Answers in the shapes of SGLang 0.5.23: chat, completions, and its own /generate.

Compared field by field with a real one that served SmolLM2: what is left out is its time stamps (`meta_info`)
and versions of weights.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from scripted import logits, tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripted.engine import Running, Token
    from scripted.script import Script

Shown = dict[str, Any]
EMPTY: Shown = {"role": None, "content": None, "reasoning_content": None}


class Shape:
    """Of one request. `take` and then `events` are called with each step's tokens, `end` once."""

    kind = ""

    def __init__(self, script: Script, running: Running) -> None:
        self._script, self._running = script, running
        self._id = f"{running.number:032x}"
        self.out: list[Token] = []  # what was told so far; the engine may be ahead

    def take(self, new: list[Token]) -> None:
        """A step's tokens."""
        self.out += new

    @property
    def _done(self) -> bool:
        return bool(self._running.finish) and len(self.out) == len(self._running.out)

    def _envelope(self, kind: str, choices: list[Shown]) -> Shown:
        return {
            "id": self._id,
            "object": kind,
            "created": int(time.time()),
            "model": self._script.model,
            "choices": choices,
        }

    def _usage(self, *, details: bool = True) -> Shown | None:
        running = self._running
        if not self._script.usage:
            return None
        reasoning = sum(token.piece.where == "reasoning" for token in self.out)
        return {
            "prompt_tokens": len(running.request.ids),
            "total_tokens": len(running.request.ids) + len(self.out),
            "completion_tokens": len(self.out),
            "prompt_tokens_details": {"cached_tokens": running.cached} if details else None,
            "reasoning_tokens": reasoning,
            "completion_tokens_details": {"reasoning_tokens": reasoning} if reasoning else None,
        }

    def _event(self, choice: Shown, *, details: bool = True) -> Shown:
        event = self._envelope(self.kind, [{"index": 0, **choice}])
        if self._running.request.continuous_usage:
            event["usage"] = self._usage(details=details)
        return event

    def _last_usage(self) -> Iterator[Shown]:
        if self._running.request.include_usage and self._script.usage:
            yield {**self._envelope(self.kind, []), "usage": self._usage()}

    def _text(self) -> str:
        return self._until_stop("".join(token.piece.text for token in self.out))

    def _new_text(self, new: list[Token]) -> str:
        """What `new`, the last of `out`, adds: up to a stop that it completes."""
        before = "".join(token.piece.text for token in self.out[: len(self.out) - len(new)])
        return self._until_stop(before + "".join(token.piece.text for token in new))[len(before) :]

    def _until_stop(self, text: str) -> str:
        matched = self._running.matched
        return text.partition(matched)[0] if self._done and isinstance(matched, str) else text


class Chat(Shape):
    """/v1/chat/completions."""

    kind = "chat.completion.chunk"

    def events(self, new: list[Token]) -> Iterator[Shown]:
        """One event for each place that got tokens: reasoning, a call, the content."""
        if len(self.out) == len(new):
            delta: Shown = {"role": "assistant", "content": "", "reasoning_content": None}
            yield self._envelope(self.kind, [self._choice(delta, None)])
        for where, call, group in _groups(new):
            logprobs = (
                {"content": [_chat_logprob(t) for t in group]} if self._running.request.top >= 0 else None
            )
            text = "".join(token.piece.text for token in group)
            if where == "call":
                first = group[0].piece.name
                function = {"name": first or None, "arguments": text}
                named = f"call_{self._id[-12:]}{call}" if first else None
                delta = {
                    "tool_calls": [{"id": named, "index": call, "type": "function", "function": function}]
                }
                yield self._event(self._choice({**EMPTY, **delta}, logprobs))
                continue
            if self._done and isinstance(self._running.matched, str):
                text = self._new_text(group)
            if text:
                name = "reasoning_content" if where == "reasoning" else "content"
                yield self._event(self._choice({"reasoning_content": None, name: text}, logprobs))

    def end(self) -> Iterator[Shown]:
        """Finish and usage."""
        delta = {"reasoning_content": None}
        yield self._envelope(self.kind, [self._choice(delta, None, self._finish(), self._running.matched)])
        yield from self._last_usage()

    def whole(self) -> Shown:
        """The answer without streaming."""
        running, calls = self._running, [""] * 8
        names: dict[int, str] = {}
        texts = {"reasoning": "", "content": "", "end": ""}
        for token in self.out:
            if token.piece.where == "call":
                calls[token.piece.call] += token.piece.text
                names[token.piece.call] = names.get(token.piece.call) or token.piece.name
            else:
                texts[token.piece.where] += token.piece.text
        texts["content"] = self._until_stop(texts["content"])
        message: Shown = {
            "role": "assistant",
            "content": texts["content"] or None,
            "reasoning_content": texts["reasoning"] or None,
        }
        if names:
            message["tool_calls"] = [
                {
                    "id": f"call_{self._id[-12:]}{call}",
                    "index": call,
                    "type": "function",
                    "function": {"name": name, "arguments": calls[call]},
                }
                for call, name in names.items()
            ]
        logprobs = {"content": [_chat_logprob(t) for t in self.out]} if running.request.top >= 0 else None
        choice: Shown = {
            "index": 0,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self._finish(),
        }
        choice["matched_stop"] = running.matched
        return {**self._envelope("chat.completion", [choice]), "usage": self._usage(), "metadata": None}

    def _finish(self) -> str:
        called = any(token.piece.where == "call" for token in self.out)
        return "tool_calls" if called and self._running.finish == "stop" else self._running.finish

    @staticmethod
    def _choice(
        delta: Shown, logprobs: Shown | None, finish: str | None = None, matched: int | str | None = None
    ) -> Shown:
        return {
            "index": 0,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish,
            "matched_stop": matched,
        }


class Completion(Shape):
    """/v1/completions."""

    kind = "text_completion"

    def events(self, new: list[Token]) -> Iterator[Shown]:
        """One event a step; the last has the finish reason."""
        running = self._running
        text = self._new_text(new)
        echoed = running.request.echo and len(self.out) == len(new)
        choice: Shown = {
            "text": running.request.prompt + text if echoed else text,
            "logprobs": self._logprobs(new, echoed),
        }
        choice["finish_reason"] = running.finish if self._done else None
        choice["matched_stop"] = running.matched if self._done else None
        yield self._event(choice, details=False)

    def end(self) -> Iterator[Shown]:
        """Usage, without what is null."""
        for event in self._last_usage():
            yield {
                **event,
                "usage": {name: value for name, value in event["usage"].items() if value is not None},
            }

    def whole(self) -> Shown:
        """The answer without streaming."""
        running = self._running
        text = self._text()
        choice = {
            "index": 0,
            "text": running.request.prompt + text if running.request.echo else text,
            "logprobs": self._logprobs(self.out, running.request.echo),
            "finish_reason": running.finish,
            "matched_stop": running.matched,
        }
        return {**self._envelope(self.kind, [choice]), "usage": self._usage(), "metadata": None}

    def _logprobs(self, new: list[Token], echoed: bool) -> Shown | None:
        request = self._running.request
        if request.top < 0:
            return None
        values: list[float | None] = []
        tops: list[list[tuple[float | None, int]]] = []
        if echoed:
            values, likely = logits.of_prompt(request.ids, 0, request.top)
            tops = [list(top) for top in likely]
        ids = [*(request.ids if echoed else []), *(token.piece.id for token in new)]
        values += [token.logprob for token in new]
        tops += [list(token.top) for token in new]
        return {
            "text_offset": [-1] * len(ids),
            "token_logprobs": values,
            "tokens": [tokens.piece(number) for number in ids],
            "top_logprobs": [{tokens.piece(n): value for value, n in top} or None for top in tops],
        }


class Generate(Shape):
    """/generate: each event has the whole text so far."""

    def events(self, new: list[Token]) -> Iterator[Shown]:
        """One event a step."""
        yield self._all(finished=self._done)

    def end(self) -> Iterator[Shown]:
        """Nothing more."""
        yield from ()

    def whole(self) -> Shown:
        """The answer without streaming."""
        return self._all(finished=True)

    def _all(self, *, finished: bool) -> Shown:
        running, request = self._running, self._running.request
        finish: Shown | None = None
        if finished and running.finish == "length":
            finish = {"type": "length", "length": len(self.out)}
        elif finished:
            finish = {"type": "stop", "matched": running.matched}
        meta: Shown = {
            "id": self._id,
            "finish_reason": finish,
            "prompt_tokens": len(request.ids),
            "weight_version": "default",
            "num_retractions": 0,
            "reasoning_tokens": 0,
            "completion_tokens": len(self.out),
            "cached_tokens": running.cached,
            "cached_tokens_details": {"device": running.cached, "host": 0} if running.cached else None,
            "dp_rank": None,
        }
        if request.top >= 0:
            meta |= self._logprobs()
        if finished:
            meta["e2e_latency"] = time.monotonic() - running.born
        if finished and running.verified:
            meta |= {
                "spec_accept_rate": running.accepted / running.proposed,
                "spec_accept_length": len(self.out) / running.verified,
                "spec_num_correct_drafts": running.accepted,
                "spec_num_proposed_drafts": running.proposed,
                "spec_verify_ct": running.verified,
            }
        return {"text": self._text(), "output_ids": [t.piece.id for t in self.out], "meta_info": meta}

    def _logprobs(self) -> Shown:
        request = self._running.request

        def entry(value: float | None, number: int) -> list[Any]:
            return [value, number, tokens.piece(number) if request.texts else None]

        said: Shown = {"input_token_logprobs": [], "input_top_logprobs": []}
        if request.prompt_from >= 0:
            values, tops = logits.of_prompt(request.ids, request.prompt_from, request.top)
            ids = request.ids[request.prompt_from :]
            said["input_token_logprobs"] = [entry(v, n) for v, n in zip(values, ids, strict=True)]
            said["input_top_logprobs"] = [[entry(v, n) for v, n in top] or None for top in tops]
        said["output_token_logprobs"] = [entry(t.logprob, t.piece.id) for t in self.out]
        said["output_token_logprobs_length"] = len(self.out)
        said["output_top_logprobs"] = [[entry(v, n) for v, n in t.top] for t in self.out]
        if not request.top:
            del said["input_top_logprobs"], said["output_top_logprobs"]
        return said


SHAPES: dict[str, type[Chat | Completion | Generate]] = {
    "/v1/chat/completions": Chat,
    "/v1/completions": Completion,
    "/generate": Generate,
}


def _groups(new: list[Token]) -> Iterator[tuple[str, int, list[Token]]]:
    """Neighbours of one place; the end belongs to what it follows."""
    group: list[Token] = []
    for token in new:
        piece = token.piece
        if (
            group
            and piece.where != "end"
            and (piece.where, piece.call) != (group[0].piece.where, group[0].piece.call)
        ):
            yield group[0].piece.where, group[0].piece.call, group
            group = []
        group.append(token)
    if group:
        yield group[0].piece.where, group[0].piece.call, group


def _chat_logprob(token: Token) -> Shown:
    shown = _named(token.piece.id, token.logprob)
    return {**shown, "top_logprobs": [_named(number, value) for value, number in token.top]}


def _named(number: int, value: float | None) -> Shown:
    text = tokens.piece(number)
    return {"token": text, "bytes": list(text.encode(errors="replace")), "logprob": value}
