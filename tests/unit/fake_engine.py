"""An engine's HTTP face without a model, with faults on request; also a program, for tests that start one.

Faults: none, `unhealthy` (/health says 503), `error` (chat says 500), `garbage` (chat answers something else,
never a stream), `london` (the wrong city), `locked` (all but /health wants a key), `unequal` (streamed
and whole text differ), `cut` (the stream breaks off).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"prompt_tokens": 7, "completion_tokens": 8, "total_tokens": 15}


class Handler(BaseHTTPRequestHandler):
    """Serves /health and /v1/chat/completions with the server's fault."""

    server: FakeEngine

    def do_GET(self) -> None:
        if self.path == "/health":
            return self._send(503 if self.server.fault == "unhealthy" else 200, b"")
        self.server.keys.append(self.headers["Authorization"])
        return self._send(401 if self.server.fault == "locked" else 200, b"{}")

    def do_POST(self) -> None:
        self.server.keys.append(self.headers["Authorization"])
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        city = "London" if self.server.fault == "london" else "Paris"
        text = f"The capital of France is {city}."
        if self.server.fault == "error":
            return self._send(500, b"the scheduler is gone")
        if self.server.fault == "locked":
            return self._send(401, b'{"error": "Unauthorized"}')
        if self.server.fault == "garbage":
            return self._send(200, b'{"choices": []}')
        if request.get("stream"):
            return self._send(200, self._events(text))
        body = {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": USAGE}
        return self._send(200, json.dumps(body).encode())

    def _events(self, text: str) -> bytes:
        if self.server.fault == "unequal":
            text += " Yes."
        events = [{"choices": [{"delta": {"content": f"{word} "}}]} for word in text.split()]
        events[-1] = {"choices": [{"delta": {"content": text.split()[-1]}}]}
        lines = [json.dumps(event) for event in [*events, {"choices": [], "usage": USAGE}]]
        lines += [] if self.server.fault == "cut" else ["[DONE]"]
        return "".join(f"data: {line}\n\n" for line in lines).encode()

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class FakeEngine(ThreadingHTTPServer):
    """Listens on loopback; `port` 0 picks a free one. `keys` are those that it was shown, None without."""

    def __init__(self, port: int = 0, fault: str = "") -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.fault = fault
        self.keys: list[str | None] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


def main() -> None:
    """As a program: `--port N`; the environment variable FAULT may also say `die` or `stubborn`."""
    fault = os.environ.get("FAULT", "")
    if os.fork() == 0:  # a scheduler, so that there is a process below the launcher
        time.sleep(600)
        os._exit(0)
    print("server_args=ServerArgs()", flush=True)
    if fault == "die":
        print("RuntimeError: no weights", flush=True)
        os._exit(3)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if fault == "stubborn" else lambda *_: os._exit(0))
    print("Uvicorn running on loopback", flush=True)
    FakeEngine(int(sys.argv[sys.argv.index("--port") + 1]), fault).serve_forever()


if __name__ == "__main__":
    main()
