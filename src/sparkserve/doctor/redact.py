"""Takes secrets out of what is read, before anything is judged, shown or put in a bundle."""

from __future__ import annotations

import re

HIDDEN = "***"
_TOKEN = re.compile(r"\b(hf_|ghp_|github_pat_|tskey-|glpat-|xox[bp]-|sk-)[A-Za-z0-9_-]{8,}")
_BEARER = re.compile(r"(?i)\b(bearer\s+)\S+")
# `password: x` in netplan, `--api-key x` in a command line (words end with NUL there), `X_TOKEN=x`.
_NAMED = re.compile(
    r"(?i)([A-Za-z0-9_.-]*(?:api[_-]?key|token|secret|passw(?:or)?d|passphrase|psk|private[_-]?key)"
    r"(?:\"?\s*[:=]\s*|\x00|[ \t]+))(\"[^\"]*\"|'[^']*'|[^\s\x00]+)"
)
_PRIVATE = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)
# Options of the engine that end in a word of secrets and hold a number.
_NUMBER = re.compile(r"\d+(\.\d+)?")


def redact(text: str) -> str:
    """`text` with `***` for every secret. The name before it stays: that a key is there is a finding."""
    text = _PRIVATE.sub(HIDDEN, text)
    text = _BEARER.sub(rf"\g<1>{HIDDEN}", text)
    text = _TOKEN.sub(HIDDEN, text)
    return _NAMED.sub(lambda m: m[0] if _NUMBER.fullmatch(m[2]) else m[1] + HIDDEN, text)
