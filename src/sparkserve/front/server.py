"""The front as a whole: listens, follows the group, probes, tells."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from sparkserve import notify
from sparkserve.errors import SparkserveError
from sparkserve.front import answers, state
from sparkserve.front.access import AccessLog
from sparkserve.front.canary import Canary
from sparkserve.front.client import Client
from sparkserve.front.health import Health
from sparkserve.front.keys import Keys
from sparkserve.front.model import Model
from sparkserve.front.upstream import Pool
from sparkserve.terminal import console

if TYPE_CHECKING:
    from collections.abc import Callable

    import h11

    from sparkserve.front.answers import Answer
    from sparkserve.front.config import Config
    from sparkserve.front.exchange import Exchange

TICK_S = 0.25
_WRITE_S = 1.0  # between two writes of front.json when nothing changed


class Front:
    """All state of a running front. Everything happens in one event loop, nothing is shared with a thread."""

    def __init__(self, config: Config, log: AccessLog, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises `KEY.FILE`."""
        self.config = config
        self.now = clock
        self.health = Health(clock, canary_s=config.canary_s, lost_s=config.lost_s)
        self.pool = Pool(config.engine)
        self.model = Model(config.model)
        self.clients: set[Client] = set()
        self.exchanges: set[Exchange] = set()
        self.counts: Counter[str] = Counter()
        self.stopping = False
        self._log = log
        self._keys = Keys(config.api_key_file) if config.api_key_file else None
        self._group_file = state.GroupFile(config.group_file)
        self._canary = Canary(self.health, config.engine, config.lost_s)
        self._started = time.time()
        self._told: tuple[str, float] = ("", 0.0)  # verdict and time of the last front.json

    def own_answer(self, request: h11.Request, path: str, peer: str) -> Answer | None:
        """What the front answers itself, None when the engine should. It gets nothing that shows no key."""
        method = request.method
        if method in (b"GET", b"HEAD"):
            if path in answers.HEALTH:
                self.counts["health"] += 1
                return answers.health(self.health)
            if path == answers.STATUS and self.config.may_see_status(peer):
                return answers.status(self.status())
        if path.startswith((answers.STATUS, answers.COUNTERS)) and not self.config.may_see_status(peer):
            return answers.error(404, "not_found", "No such page.", path)
        end = "refused"
        if self._keys is not None and not self._keys.known(request.headers):
            end = "unauthorized"
            answer = answers.no_keys(path) if self._keys.problem else answers.no_key(path)
        elif method == b"CONNECT":
            answer = answers.error(405, "no_tunnel", "This is not a proxy for other hosts.", path)
        elif self.stopping:
            answer = answers.error(503, "front_stopping", "This server is being stopped.", path, 10)
        elif self.health.refuses:
            answer = answers.refusal(self.health, path)
        else:
            return None
        self.ended(client=peer, method=method.decode(), path=path, status=answer.status, end=end)
        return answer

    def ended(self, **line: Any) -> None:
        """A request is over: count it and log it."""
        self.counts[line["end"]] += 1
        self._log.line(t=round(time.time(), 3), boot=self.health.group.boot, **line)

    def status(self) -> dict[str, Any]:
        """The status page: front.json, and what only people want."""
        return {
            **self._state().model_dump(by_alias=True),
            "group": self.health.group.model_dump(by_alias=True),
            "clients": len(self.clients),
            "log_lines_dropped": self._log.dropped,
            "started_at": round(self._started, 3),
            "engine": str(self.config.engine),
        }

    def _state(self) -> state.FrontState:
        age = self.health.token_age_s
        return state.FrontState(
            written_at=round(time.time(), 3),
            pid=os.getpid(),
            boot=self.health.group.boot,
            verdict=self.health.verdict,
            reason=self.health.reason,
            last_token_age_s=None if age is None else round(age, 3),
            in_flight=len(self.exchanges),
            requests=dict(self.counts),
            canary=self.health.probe,
        )

    def tick(self) -> None:
        """Four times a second: what has changed, and what is due."""
        group = self._group_file.poll()
        if group != self.health.group and self.health.see(group):
            reason = group.reason or f"the group is {group.state}"
            for exchange in list(self.exchanges):
                exchange.fail(503, "engine_lost", f"The engine was taken down in this request: {reason}.")
            self.pool.sweep(everything=True)
            self._canary.cancel()
        if self.health.probe_due():
            self._canary.send()
        self._look_at_keys()
        self._tell()

    def _look_at_keys(self) -> None:
        """Take new keys, and say in the journal when they cannot be read or can be read again."""
        if self._keys is None:
            return
        before = self._keys.problem
        self._keys.poll()
        if self._keys.problem != before:
            console.print(self._keys.problem or "The keys can be read again.", markup=False)

    def _tell(self) -> None:
        """Write front.json when it is time, and say a changed verdict in the journal."""
        now, verdict = self.now(), self.health.verdict
        before, at = self._told
        if verdict != before:
            console.print(f"{before or 'start'} -> {verdict}: {self.health.reason}", markup=False)
        if verdict != before or now - at >= _WRITE_S:
            self._told = (verdict, now)
            try:
                state.write(self.config.front_file, self._state())
            except OSError as error:  # a full or missing /run must not take the endpoint down
                if verdict != before:
                    console.print(f"cannot write {self.config.front_file}: {error}", markup=False)

    def sweep(self) -> None:
        """Once a second: close what lets us wait for too long."""
        now = self.now()
        for client in list(self.clients):
            client.check(now)
        self.pool.sweep()

    async def serve(self) -> None:
        """Run until SIGTERM or SIGINT. Raises what `start` raises."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        _allow_files()
        await self.start()
        notify.ready()
        try:
            await stop.wait()
        finally:
            await self.stop()

    async def start(self) -> list[int]:
        """Listen; the ports. Raises `HOST.PORT` when one cannot be had."""
        self.tick()
        self._servers = await self._listen()
        self._ticking = asyncio.get_running_loop().create_task(self._tick_for_ever())
        return [int(server.sockets[0].getsockname()[1]) for server in self._servers]

    async def stop(self) -> None:
        """Take nothing new, let requests in flight end for at most `grace_s`, forget `front.json`."""
        self.stopping = True
        for server in self._servers:
            server.close()
        for client in list(self.clients):
            client.stop()
        await self._in_flight_end()
        self._ticking.cancel()
        self._canary.cancel()
        self.pool.sweep(everything=True)
        self.config.front_file.unlink(missing_ok=True)

    async def _listen(self) -> list[asyncio.Server]:
        loop = asyncio.get_running_loop()
        servers: list[asyncio.Server] = []
        for address in self.config.listen:
            try:
                server = await loop.create_server(
                    lambda: Client(self), address.host, address.port, backlog=512
                )
            except OSError as error:
                for other in servers:
                    other.close()
                raise SparkserveError(
                    "HOST.PORT",
                    expected="a free port for the endpoint",
                    found=os.strerror(error.errno) if error.errno else str(error),
                    where=str(address),
                    do="Stop what listens there, or set another serving.port in hosts/<fleet>/fleet.nix.",
                ) from None
            servers.append(server)
        return servers

    async def _in_flight_end(self) -> None:
        deadline = self.now() + self.config.grace_s
        while self.exchanges and self.now() < deadline:
            await asyncio.sleep(0.05)
        for exchange in list(self.exchanges):
            exchange.fail(503, "front_stopping", "This server was stopped in the middle of this request.")
        await asyncio.sleep(0.05)  # for the last bytes

    async def _tick_for_ever(self) -> None:
        swept = self.now()
        while True:
            await asyncio.sleep(TICK_S)
            self.tick()
            if self.now() - swept >= 1.0:
                swept = self.now()
                self.sweep()
                notify.alive()


def _allow_files() -> None:
    """Two descriptors a stream: the usual soft limit of 1024 would end at some 500 of them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 16384 if hard == resource.RLIM_INFINITY else min(16384, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def run(config: Config) -> None:
    """Serve until stopped by a signal. Raises `KEY.FILE`, `HOST.PORT`."""
    log = AccessLog()
    # What the imports made lives for ever: a full collection over it stops the streams for some 10 ms.
    gc.collect()
    gc.freeze()
    try:
        asyncio.run(Front(config, log).serve())
    finally:
        log.close()
