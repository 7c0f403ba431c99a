"""The service of a node over a real socket, and the commands that ask it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import engine_values
import group_values
import pytest
from metrics_node import HEAD, Files

from sparkserve.cli.main import main
from sparkserve.errors import SparkserveError
from sparkserve.front.config import Config
from sparkserve.metrics import fleet, node, scrape, serve
from sparkserve.metrics.gpu import Gpu

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sparkserve.metrics.families import Sample
    from sparkserve.plan import Plan


def closure(folder: Path, rank: int = 0) -> tuple[Path, Plan]:
    """A host closure's two files, and its plan."""
    plan = group_values.plan(rank, group_values.free_ports())
    folder.mkdir()
    (folder / "plan.json").write_text(plan.model_dump_json(by_alias=True))
    (folder / "closure.json").write_text(engine_values.closure().model_dump_json(by_alias=True))
    return folder, plan


@contextmanager
def served(tmp_path: Path, rank: int = 0) -> Iterator[tuple[str, int, Plan]]:
    (tmp_path / "node").mkdir()
    path, plan = closure(tmp_path / "closure", rank)
    server = serve.make(path, Files(tmp_path / "node").places, Gpu(lambda: ""))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    host, port = server.server_address[:2]
    try:
        yield str(host), port, plan
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def get(host: str, port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Engine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"# TYPE sglang:num_requests_total counter\nsglang:num_requests_total 3\n"
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_head_tells_of_itself_and_of_its_engine(tmp_path: Path) -> None:
    with served(tmp_path) as (host, port, plan):
        status, text = get(host, port, "/metrics")
        assert status == 200 and scrape.read(text)["sparkserve_rank_up"] == 1
        assert get(host, port, "/metrics?x=1")[0] == 200
        assert get(host, port, "/")[0] == 404
        status, text = get(host, port, "/engine")
        assert status == 503 and "The engine does not answer" in text
        assert plan.group is not None
        with HTTPServer(("127.0.0.1", plan.group.engine_port), Engine) as engine:
            thread = threading.Thread(target=engine.serve_forever)
            thread.start()
            try:
                time.sleep(serve.CACHED_S + 0.1)
                status, text = get(host, port, "/engine")
            finally:
                engine.shutdown()
                thread.join()
        assert status == 200 and scrape.read(text) == {"sglang:num_requests_total": 3}


def test_a_worker_has_no_engine_to_tell_of(tmp_path: Path) -> None:
    with served(tmp_path, rank=1) as (host, port, _):
        assert host == "127.0.0.2"
        assert get(host, port, "/engine")[0] == 404


def test_many_scrapes_read_the_node_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, original = [], node.samples

    def samples(*given: Any) -> Iterator[Sample]:
        read.append(given)
        return original(*given)

    monkeypatch.setattr(node, "samples", samples)
    monkeypatch.setattr(serve, "CACHED_S", 3600)
    with served(tmp_path) as (host, port, _):
        texts = {get(host, port, "/metrics")[1] for _ in range(20)}
    assert len(texts) == 1 and len(read) == 1


def test_slow_clients_keep_nobody_out_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve._Handler, "timeout", 0.5)
    with served(tmp_path) as (host, port, _):
        slow = [socket.create_connection((host, port)) for _ in range(100)]
        deadline = time.monotonic() + 30
        while True:
            try:
                status, _ = get(host, port, "/metrics")
                break
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < deadline
        assert status == 200
        assert threading.active_count() <= serve.THREADS + 2
        for each in slow:
            each.close()


def test_only_the_management_network_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def refuses(_: Config, peer: str) -> bool:
        seen.append(peer)
        return False

    monkeypatch.setattr(Config, "may_see_status", refuses)
    with served(tmp_path) as (host, port, _), pytest.raises((OSError, http.client.HTTPException)):
        get(host, port, "/metrics")
    assert seen == ["127.0.0.1"]


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    path, plan = closure(tmp_path / "closure")
    with (
        socket.create_server(fleet.address(plan)),
        pytest.raises(SparkserveError, match=r"HOST\.PORT.*metrics"),
    ):
        serve.make(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["metrics", *arguments])
    assert isinstance(caught.value.code, int)
    return (caught.value.code, *capsys.readouterr())


def test_its_address_may_come_later(tmp_path: Path) -> None:
    path, plan = closure(tmp_path / "closure")
    value = json.loads(plan.model_dump_json(by_alias=True))
    value["fabric"]["management"]["address"] = "192.0.2.7"  # of nobody (RFC 5737)
    (path / "plan.json").write_text(json.dumps(value))
    serve.make(path).server_close()


def test_a_plan_that_cannot_be_read_is_not_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = closure(tmp_path / "closure")
    (path / "plan.json").write_text("{}")
    code, _, _ = run(capsys, "serve", str(path))
    unit = HEAD.host.units["sparkserve-metrics.service"]
    assert f"RestartPreventExitStatus={code}" in unit.splitlines()


def test_sigterm_is_a_good_end(tmp_path: Path) -> None:
    path, plan = closure(tmp_path / "closure")
    program = "from sparkserve.cli.main import main; main()"
    argv = [sys.executable, "-c", program, "metrics", "serve", str(path)]
    with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as service:
        deadline = time.monotonic() + 60
        while True:
            try:
                status, text = get(*fleet.address(plan), "/metrics")
                break
            except OSError:
                assert time.monotonic() < deadline and service.poll() is None
                time.sleep(0.1)
        service.terminate()
        assert service.wait(30) == 0
    assert status == 200 and "sparkserve_info{" in text


def test_a_fleet_is_asked_at_once(tmp_path: Path) -> None:
    with served(tmp_path) as (_, _, head):
        absent = group_values.plan(2, group_values.free_ports())
        told = fleet.ask([head, absent])
    assert told["spark-0"].samples["sparkserve_generation"] == 12 and not told["spark-0"].error
    assert "Connection refused" in told["spark-2"].error


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(tmp_path) as (_, port, head):
        absent = group_values.plan(2, group_values.free_ports())
        monkeypatch.setattr("sparkserve.fleet.plans.load", lambda _: [head, absent])
        code, out, err = run(capsys, "show")
        assert code == 71 and "spark-2: 127.0.0.3:" in err
        assert "sparkserve_guard_line_bytes" in out and "3.39 GiB" in out
        assert 'sparkserve_group_state{state="up"}' in out
        assert 'sparkserve_group_state{state="down"}' not in out
        code, out, _ = run(capsys, "show", "--node", "spark-0", "--json")
        assert code == 0
        assert json.loads(out)["nodes"]["spark-0"]["samples"]["sparkserve_rank_up"] == 1
        code, _, err = run(capsys, "show", "--node", "spark-9")
        assert "FLEET.NAME" in err and "spark-0, spark-2" in err
        found = json.loads(run(capsys, "targets")[1])
    assert found[0] == {
        "targets": [f"127.0.0.1:{port}"],
        "labels": {"fleet": "local-triangle", "node": "spark-0", "part": "node"},
    }
    assert found[1]["labels"]["__metrics_path__"] == "/engine" and found[1]["labels"]["part"] == "engine"
    assert [each["labels"]["node"] for each in found] == ["spark-0", "spark-0", "spark-2"]


def test_a_single_node_has_no_service(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sparkserve.fleet.plans.load", lambda _: [engine_values.plan()])
    assert "GROUP.STATE" in run(capsys, "show")[2]
