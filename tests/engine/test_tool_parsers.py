"""SGLang's parsers of tool calls, with texts split at every place: a stream must give what the whole gives.

Chunks of a stream are where the engine's steps end: anywhere. DeepSeek V4.1's markup is the one that is
served; Qwen's shows what is a parser's own. A fault of the pinned SGLang is in `still`: the test of it fails
when it is gone.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from sglang.srt.entrypoints.openai.protocol import Function, Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": "array"}, "force": {"type": "boolean"}},
}
TOOLS = [
    Tool(type="function", function=Function(name=name, description=name, parameters=_SCHEMA))
    for name in ("write_file", "list_files")
]
BAR = "\uff5c"
# Of what agents write: quotes, braces, a redirection at the end, tags, line ends, other writings.
HARD = 'if [ "$a" -lt 2 ]; then echo "{水}" </dev/null; fi\n\tGrüße \\n \U0001f30a run.sh > out.log 2>&1'

Calls = list[tuple[str, Any]]


def dsml(*calls: tuple[str, dict[str, Any]], block: str, invoke: str, parameter: str) -> str:
    """Calls as a DeepSeek model writes them; strings raw, all else as JSON."""
    text = f"<{BAR}DSML{BAR}{block}>\n"
    for name, arguments in calls:
        text += f'<{BAR}DSML{BAR}{invoke} name="{name}">\n'
        for key, value in arguments.items():
            raw, kind = (value, "true") if isinstance(value, str) else (json.dumps(value), "false")
            text += (
                f'<{BAR}DSML{BAR}{parameter} name="{key}" string="{kind}">{raw}</{BAR}DSML{BAR}{parameter}>\n'
            )
        text += f"</{BAR}DSML{BAR}{invoke}>\n"
    return f"{text}</{BAR}DSML{BAR}{block}>"


def v41(*calls: tuple[str, dict[str, Any]]) -> str:
    """DeepSeek V4.1: its tag names begin with a space."""
    return dsml(*calls, block=" calls", invoke=" invoke", parameter=" parameter")


def qwen(*calls: tuple[str, dict[str, Any]]) -> str:
    """Qwen 2.5 and 3."""
    written = [
        json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) for name, arguments in calls
    ]
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in written)


ONE = (("write_file", {"path": "a/b c.txt", "lines": [1, {"x": None}], "force": True}),)
TWO = (*ONE, ("list_files", {"path": HARD}))
FORMATS = {"deepseekv41": v41, "qwen25": qwen}


def whole(parser: str, text: str) -> tuple[str, Calls]:
    """The content and the calls of a text at once."""
    content, items = FunctionCallParser(TOOLS, parser).parse_non_stream(text)
    return content, [(item.name, json.loads(item.parameters)) for item in items]


def streamed(parser: str, pieces: list[str]) -> tuple[str, Calls]:
    """The same piece by piece, put together as a client does."""
    made = FunctionCallParser(TOOLS, parser)
    content, names, arguments = "", dict[int, str](), dict[int, str]()
    for text, items in [*map(made.parse_stream_chunk, pieces), made.parse_stream_end()]:
        content += text
        for item in items:
            if item.name:
                assert item.tool_index not in names, f"the name of call {item.tool_index} comes twice"
                names[item.tool_index] = item.name
            arguments[item.tool_index] = arguments.get(item.tool_index, "") + (item.parameters or "")
    return content, [(names[index], json.loads(arguments[index])) for index in sorted(names)]


def stripped(found: tuple[str, Calls]) -> tuple[str, Calls]:
    """Blanks between a text and its calls belong to neither."""
    return found[0].strip(), found[1]


def at_every_place(parser: str, text: str, expected: tuple[str, Calls]) -> list[str]:
    """What goes wrong with the text in two pieces, in single characters, and in random pieces."""
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    draw = random.Random(seed)  # noqa: S311 - a test
    ways = [[text], list(text)] + [[text[:place], text[place:]] for place in range(1, len(text))]
    for _ in range(200):  # as tokens come: one to twelve characters
        pieces, place = [], 0
        while place < len(text):
            size = draw.randint(1, 12)
            pieces.append(text[place : place + size])
            place += size
        ways.append(pieces)
    wrong = []
    for pieces in ways:
        try:
            found: Any = streamed(parser, pieces)
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if isinstance(found, str) or stripped(found) != stripped(expected):
            wrong.append(f"{[piece[-12:] for piece in pieces][:2]} of {len(pieces)}: {found!r}")
    return wrong


def right(parser: str, calls: Any, before: str = "") -> None:
    text = before + FORMATS[parser](*calls)
    expected = (before.strip(), [(name, arguments) for name, arguments in calls])
    content, made = whole(parser, text)
    assert (content.strip(), made) == expected, f"whole: {content!r}, {made}"
    wrong = at_every_place(parser, text, (content, made))
    assert not wrong, f"{len(wrong)} ways are wrong, such as\n" + "\n".join(wrong[:5])


def test_deepseek_one_call() -> None:
    right("deepseekv41", ONE)


def test_deepseek_two_calls_with_hard_arguments() -> None:
    right("deepseekv41", TWO)


def test_deepseek_text_before_calls() -> None:
    right("deepseekv41", TWO, before="I look first.\n\n")


def test_deepseek_a_call_without_arguments() -> None:
    right("deepseekv41", (("list_files", {}),))


def test_deepseek_text_without_calls() -> None:
    for text in ("if a < b then c > d", "run.sh > out.log 2>&1", f"a <{BAR} b", "x </", f"the {BAR} is wide"):
        assert whole("deepseekv41", text) == (text, [])
        wrong = at_every_place("deepseekv41", text, (text, []))
        assert not wrong, wrong[:5]


def test_deepseek_text_after_calls_is_dropped_streamed_as_whole() -> None:
    text = v41(*ONE) + "\n\nDone."
    wrong = at_every_place("deepseekv41", text, whole("deepseekv41", text))
    assert not wrong, wrong[:5]


def test_deepseek_calls_that_nobody_wrapped() -> None:
    made = v41(*TWO)
    text = made[made.index("\n") + 1 : made.rindex("\n")]
    expected = ("", [(name, arguments) for name, arguments in TWO])
    assert whole("deepseekv41", text) == expected
    wrong = at_every_place("deepseekv41", text, expected)
    assert not wrong, wrong[:5]


def test_qwen_in_single_characters() -> None:
    text = qwen(*TWO)
    assert streamed("qwen25", list(text)) == whole("qwen25", text) == ("", list(TWO))


def still(fault: str, check: Callable[[], None]) -> None:
    """A fault that the pinned SGLang has, and that a user would meet. Fails when `check` passes."""
    try:
        check()
    except AssertionError as error:
        print(f"{fault}: {str(error)[:300]}")
    else:
        raise AssertionError(f"this SGLang is without the fault: {fault}. Make it an ordinary test")


def test_faults_of_the_pinned_sglang() -> None:
    made = v41(*TWO)

    def unclosed() -> None:
        text = made[: made.rindex("\n")]
        assert whole("deepseekv41", text) == streamed("deepseekv41", list(text))

    def after_an_empty_block() -> None:
        text = f"before <{BAR}DSML{BAR} calls>\n</{BAR}DSML{BAR} calls> after"
        assert whole("deepseekv41", text) == ("before  after", [])

    still("whole calls in a block without its end are calls streamed, and nothing whole", unclosed)
    still("an empty block of calls swallows the text after it", after_an_empty_block)
    still("Qwen: a last piece with a whole call in it has no arguments", lambda: right("qwen25", ONE))
    still("Qwen: a piece that ends a call and has the next loses the next", lambda: right("qwen25", TWO))
