"""Takes secrets out of what is read, before anything is judged, shown or put in a bundle.

By the name before a value, and by the form of the value itself. It hides too much rather than too little: a
bundle goes to strangers. Of command lines only what checks ask stays (`words.py`).
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
_WORDS = (
    r"(?:api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|(?<![a-z])key|(?-i:(?<=[a-z])Key)"
    r"|secret|token|passw(?:or)?d|pass(?:phrase|code)|(?<!by)pass|pwd|(?<![a-z])pw|credentials?|signature|psk)"
)
# What is written in one of these forms is a secret whatever stands before it.
_SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:hf_|gh[pousr]_|github_pat_|tskey-|gl[a-z]{0,6}pat-|xox[a-z]-|sk-|nvapi-|npm_|pypi-|dckr_pat_|ya29\."
    r"|(?:sk|pk|rk)_(?:live|test)_)[A-Za-z0-9_.-]{8,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{6,300}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?",
    re.S,
)
# Each keeps what stands before the secret, its first group: that there is a key is a finding.
_AFTER = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?i)((?:proxy-)?(?:authorization|cookie)[\"']?\s{0,4}[:=]\s{0,4})[^\r\n\x00]+",
        r"(?im)^([ \t]*(?:extra-)?access-tokens[ \t]*=).*$",
        r"(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}",
        r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s\x00\"']{1,500}(?=@)",
        # A block of YAML: every line that is further in.
        rf"(?im)^(([ \t]{{0,200}})[^\n:]{{0,80}}{_WORDS}[\"']?[ \t]*:[ \t]*[|>][^\n]*\n)"
        r"(?:\2[ \t]+[^\n]*(?:\n|\Z)|[ \t]*\n)+",
        rf"(?i)((?<=[a-z\s-]-){_WORDS}[ \t]{{1,4}})\S+",
    )
)
# `password: x y` in netplan and headers, `X_TOKEN=x`, and the next word of a command line, where words end
# with NUL. What comes before the word may not be matched too: a log can have a line of megabytes, tried at
# each place.
_NAMED = re.compile(
    # Counts in the engine's log are passed over.
    r"(?i)(?:full_|swa_|#new-|#cached-)token(?:=|: )\d+(?![^\s,)])"
    rf"|({_WORDS}(?:_\w{{1,20}})?[\"']?)"
    r"(?:(\s{0,4}[:=]\s{0,40}|\x00)(?:\"[^\"]{0,4000}\"|'[^']{0,4000}')"
    r"|(\s{0,4}:\s{1,40})[^\n\x00]+|(\s{0,4}[:=]\s{0,40}|\x00)[^\s\x00]+)"
)


def redact(text: str) -> str:
    """`text` with `***` for every secret. The name before it stays: that a key is there is a finding."""
    text = _SHAPES.sub(HIDDEN, text)
    for pattern in _AFTER:
        text = pattern.sub(lambda m: m[1] + HIDDEN, text)
    return _NAMED.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    return found[1] + (found[2] or found[3] or found[4]) + HIDDEN if found[1] else found[0]


def redact_value(value: Any, name: str = "") -> Any:
    """The same for JSON: texts in it, and every text under a name of secrets."""
    if isinstance(value, dict):
        return {key: redact_value(each, str(key)) for key, each in value.items()}
    if isinstance(value, list):
        return [redact_value(each) for each in value]
    if not isinstance(value, str):
        return value
    return HIDDEN if value and re.search(rf"(?i){_WORDS}$", name) else redact(value)
