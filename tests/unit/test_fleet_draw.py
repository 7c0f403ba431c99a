"""The picture of a fleet: its content and its SVG, without Nix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import engine_values
import pytest

from sparkserve import nix
from sparkserve.cli.main import main
from sparkserve.engine import runner
from sparkserve.fleet import draw, picture, plans
from sparkserve.fleet.picture import Layer, Node, Picture, Source
from sparkserve.fleet.svg import Box
from sparkserve.pins import store

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TARGETS = {"base": "/", "site": "/opt/engine", "overlay": "/opt/overlay", "model": "/model"}
ODD = '<b>&"]]>\x01\ud800 名'


def fleet(count: int, *, name: str = "spark", digests: bool = True) -> Picture:
    layers = tuple(
        Layer(
            layer,
            target,
            Source(layer, f"{i + 2} wheels", "21 MB", f"nix/pins/{layer}.json"),
            10 ** (i + 5),
            f"{i + 7:x}" * 64 if digests else None,
        )
        for i, (layer, target) in enumerate(TARGETS.items())
    )
    memory = ("/dev/shm 2048 MiB", "/tmp", "/run", "/root")  # noqa: S108 - names to draw
    nodes = tuple(
        Node(f"{name}-{rank}", rank, f"192.168.100.{100 + rank}", "engine-cpu", layers, memory)
        for rank in range(count)
    )
    return Picture(name, "http://192.168.100.100:8888", "smollm2", nodes, "ab" * 32 if digests else None)


def elements(text: str, tag: str) -> Iterator[ET.Element]:
    return ET.fromstring(text).iter(f"{{http://www.w3.org/2000/svg}}{tag}")  # noqa: S314 - made here


def texts(text: str) -> list[str]:
    return [(element.text or "").strip() for element in elements(text, "text")]


def boxes(text: str) -> list[Box]:
    keys = ("x", "y", "width", "height")
    return [Box(*(float(element.attrib[key]) for key in keys)) for element in elements(text, "rect")]


def inside(inner: Box, outer: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def apart(one: Box, two: Box) -> bool:
    return (
        one.x + one.width <= two.x
        or two.x + two.width <= one.x
        or one.y + one.height <= two.y
        or two.y + two.height <= one.y
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_everything_is_named_and_nothing_is_cut(count: int) -> None:
    shown = texts(draw.draw(fleet(count)))
    for rank in range(count):
        assert f"spark-{rank}" in shown
        assert f"rank {rank}" in shown
        assert f"{'worker' if rank else 'head'}, 192.168.100.{100 + rank}" in shown
    for layer, target in TARGETS.items():
        assert shown.count(layer) == count + 1  # once in each node, once as a source
        assert shown.count(target) == count
        assert f"nix/pins/{layer}.json" in shown
    assert {"ab" * 32, "100 kB", "1 MB", "10 MB", "100 MB"} <= set(shown)
    assert any("/dev/shm\u00a02048\u00a0MiB" in line for line in shown)  # noqa: S108
    assert not [line for line in shown if "…" in line]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_boxes_do_not_overlap(count: int) -> None:
    page, *drawn = boxes(draw.draw(fleet(count)))
    assert page.width == 900
    assert all(inside(box, page) for box in drawn)
    nodes = draw.node_boxes(fleet(count))
    assert set(nodes) <= set(drawn)
    for i, one in enumerate(drawn):
        for two in drawn[i + 1 :]:
            assert apart(one, two) or inside(two, one), (one, two)
    for i, node in enumerate(nodes):
        assert all(apart(node, other) for other in nodes[i + 1 :])


def test_equal_input_gives_equal_bytes() -> None:
    assert draw.draw(fleet(3)) == draw.draw(fleet(3))


def test_odd_names_are_escaped() -> None:
    text = draw.draw(fleet(1, name=ODD))
    assert '<b>&"]]>\ufffd\ufffd 名-0' in texts(text)
    text.encode()


def test_a_long_name_is_cut_and_whole_in_its_tooltip() -> None:
    text = draw.draw(fleet(4, name="a" * 80))
    assert f"{'a' * 80}-3" in [element.text for element in elements(text, "title")]
    assert all(len(line) < 80 for line in texts(text) if line.startswith("aa"))


def test_what_is_not_built_has_no_digest() -> None:
    text = draw.draw(fleet(1, digests=False))
    assert "ab" * 32 not in text
    assert "7" * 8 not in text
    assert "/opt/overlay" in texts(text)


@pytest.mark.parametrize("field", ["site", "model", "overlay", "adapters"])
def test_sources_are_counted_from_the_pins(monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(ROOT))
    found = picture.source(field, engine_values.plan())
    if field in ("overlay", "adapters"):
        assert (found.what, found.amount) == ("files of this repository", "")
        assert (ROOT / found.file).is_dir()
        return
    pinned = json.loads((ROOT / found.file).read_text())["pins"]
    assert found.what == f"{len(pinned)} wheels"
    assert found.amount == f"{sum(pin['size'] for pin in pinned) / 1e6:.0f} MB"


def test_memory_is_what_the_runner_mounts() -> None:
    argv = runner.command(engine_values.plan(), engine_values.closure())
    assert picture.memory_folders(argv) == ("/dev/shm 64 MiB", "/tmp", "/run", "/root")  # noqa: S108
    assert picture.memory_folders(runner.kernel_folders(64)) == picture.memory_folders(argv)


@pytest.mark.parametrize("built", [True, False])
@pytest.mark.parametrize("digests", [True, False])
def test_collect(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, built: bool, digests: bool) -> None:
    host = tmp_path / "host"
    if built:
        host.mkdir()
        (host / "closure.json").write_text(engine_values.closure().model_dump_json(by_alias=True))
    layers = [
        {"name": "base", "target": "/", "tree": "/nix/store/base", "digest": "/nix/store/base-digest"},
        {"name": "site", "target": "/opt/engine", "tree": "/nix/store/gone", "digest": "/nix/store/x"},
    ]
    answers: dict[str, Any] = {
        "hosts.local-single.spark-0.outPath": str(host),
        "hosts.local-single.spark-0.layers": layers,
    }
    monkeypatch.setenv("SPARKSERVE_CHECKOUT", str(ROOT))
    monkeypatch.setattr(plans, "load", lambda _: [engine_values.plan()])
    monkeypatch.setattr(nix, "eval_json", answers.__getitem__)
    monkeypatch.setattr(store, "missing", lambda paths: {"/nix/store/gone"} & set(paths))
    monkeypatch.setattr(store, "sizes", lambda paths: dict.fromkeys(paths, 1000))
    found = picture.collect("local-single", digests=digests)
    shown = built and digests
    assert found.fleet_id == ("0" * 64 if shown else None)
    node = found.nodes[0]
    assert [(layer.name, layer.size) for layer in node.layers] == [("base", 1000), ("site", None)]
    assert [layer.digest for layer in node.layers] == ["0" * 64 if shown else None, None]
    assert (node.address, found.endpoint) == ("127.0.0.1", "http://127.0.0.1:8888")


@pytest.mark.parametrize("digests", [True, False])
def test_the_command_writes_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], digests: bool
) -> None:
    monkeypatch.setattr(picture, "collect", lambda _, digests: fleet(1, digests=digests))
    file = tmp_path / "fleet.svg"
    option = "--digests" if digests else "--no-digests"
    with pytest.raises(SystemExit) as caught:
        main(["fleet", "draw", option, "--output", str(file)])
    assert caught.value.code == 0
    assert file.read_text() == draw.draw(fleet(1, digests=digests))
    assert capsys.readouterr() == ("", "")
