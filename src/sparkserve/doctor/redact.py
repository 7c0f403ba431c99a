"""Takes secrets out of what is read, before anything is judged, shown or put in a bundle."""

from __future__ import annotations

import re

HIDDEN = "***"
_TOKEN = re.compile(r"\b(hf_|ghp_|github_pat_|tskey-|glpat-|xox[bp]-|sk-)[A-Za-z0-9_-]{8,}")
_BEARER = re.compile(r"(?i)\b(bearer\s+)\S+")
_WORDS = "(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|psk|private[_-]?key)"
# `password: x` in netplan, `X_TOKEN=x`, and the next word of a command line, where words end with NUL. What
# comes before the word may not be matched too: a log can have a line of megabytes, tried at each place.
_NAMED = re.compile(rf"(?i)({_WORDS}(?:\"?\s{{0,4}}[:=]\s{{0,4}}|\x00))(\"[^\"]*\"|'[^']*'|[^\s\x00]+)")
_OPTION = re.compile(rf"(?i)((?<=-){_WORDS}[ \t]{{1,4}})(\S+)")
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)
# What an engine counts, as full_token=750080. A password of digits is a secret.
_COUNT = re.compile(r"(?i)token[^a-z]*\d+(\.\d+)?")


def redact(text: str) -> str:
    """`text` with `***` for every secret. The name before it stays: that a key is there is a finding."""
    text = _PRIVATE.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\g<1>{HIDDEN}", text)
    text = _TOKEN.sub(HIDDEN, text)
    for pattern in (_NAMED, _OPTION):
        text = pattern.sub(lambda m: m[0] if _COUNT.fullmatch(m[0]) else m[1] + HIDDEN, text)
    return text
