"""The one-shot collectives in SGLang's own groups, against a reference; and ranks lost in every way."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import torch
from ranks import NAME, SIZE, Ranks

from sparkserve.adapters import registry

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32)
ROUNDS = 150


def _tensor(seed: int, rank: int) -> torch.Tensor:
    """The tensor of a rank in a round: any rank can make those of the others."""
    draw = random.Random(seed)  # noqa: S311 - a test
    dtype = draw.choice(DTYPES)
    # From a decode step to a prefill that no socket holds.
    shape = [draw.choice((1, 3, 64)), draw.choice((1, 2, 576, 1536)), draw.choice((1, 5, 7))]
    generator = torch.Generator().manual_seed(seed * SIZE + rank)
    return (torch.randn(shape, generator=generator) * 1000).to(dtype)


def _same(ours: torch.Tensor, expected: torch.Tensor) -> None:
    assert ours.dtype == expected.dtype and ours.shape == expected.shape
    assert torch.equal(ours.reshape(-1).view(torch.uint8), expected.reshape(-1).view(torch.uint8))


def _sum(parts: list[torch.Tensor]) -> torch.Tensor:
    """In rank order; the short floating types in float32."""
    short = parts[0].dtype in (torch.bfloat16, torch.float16)
    total = parts[0].float() if short else parts[0].clone()
    for part in parts[1:]:
        total = total + (part.float() if short else part)
    return total.to(parts[0].dtype)


def test_equal_to_the_reference_bit_by_bit_on_every_rank() -> None:
    def work(rank: int, group: Any) -> None:
        for seed in range(ROUNDS):
            parts = [_tensor(seed, each) for each in range(SIZE)]
            own = parts[rank].clone()
            summed = group.all_reduce(own)
            assert summed is own
            _same(summed, _sum(parts))
            for dim in (0, 1, -1):
                _same(group.all_gather(parts[rank], dim), torch.cat(parts, dim))
            out = torch.empty((SIZE * parts[0].shape[0], *parts[0].shape[1:]), dtype=parts[0].dtype)
            group.all_gather_into_tensor(out, parts[rank])
            _same(out, torch.cat(parts))
        crossed = torch.arange(12.0).reshape(3, 4).t()
        _same(group.all_reduce(crossed.clone().t().contiguous().t()), crossed * SIZE)
        assert group.all_reduce(torch.empty(0, 5)).shape == (0, 5)

    codes, lines = ranks(work)
    assert codes == [0, 0, 0]
    assert [[line["event"], line["adapter"], line["rank"]] for (line,) in lines] == [
        ["armed", NAME, rank] for rank in range(SIZE)
    ]
    assert len({(line["group"], line["fingerprint"], line["settings"]) for (line,) in lines}) == 1


def test_another_setting_on_one_rank_stops_all_and_is_named() -> None:
    codes, lines = ranks(_reduce, settings=[{"timeout_s": 2}, {"timeout_s": 3}, {"timeout_s": 2}])
    assert codes == [78, 78, 78]
    for (line,) in lines:
        assert line["event"] == "refused"
        assert "settings.timeout_s is 2 on ranks 0, 2, 3 on rank 1" in line["reason"]


def test_adapter_that_raises_is_named_and_the_others_do_not_wait_for_ever() -> None:
    class Raises:
        def __init__(self, settings: Any) -> None:
            raise RuntimeError("no luck")

    def before(rank: int) -> None:
        if rank == 2:
            setattr(registry, "code", lambda name: Raises)  # noqa: B010 - a test

    made = Ranks(_reduce, before=before)
    # The others wait in torch's own rendezvous, which the launcher ends when rank 2 is gone.
    os.waitpid(made.pids[2], 0)
    for pid in made.pids[:2]:
        os.kill(pid, signal.SIGKILL)
    (line,) = made.lines(2)
    assert (line["event"], line["adapter"], line["rank"]) == ("refused", NAME, 2)
    assert "no luck" in line["reason"]


def test_adapter_that_cannot_start_on_one_rank_ends_all() -> None:
    def before(rank: int) -> None:
        if rank == 2:
            real = registry.code(NAME)
            broken = type("NoStart", (real,), {"start": None})
            setattr(registry, "code", lambda name: broken)  # noqa: B010 - a test

    codes, lines = ranks(_reduce, before=before)
    assert codes == [78, 78, 78]
    assert "TypeError" in lines[2][0]["reason"]
    assert all("rank 2" in lines[rank][0]["reason"] for rank in (0, 1))


def test_killed_rank_ends_the_others_by_name() -> None:
    def work(rank: int, group: Any) -> None:
        _reduce(rank, group)
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        _reduce(rank, group)

    codes, lines = ranks(work)
    assert codes == [79, -9, 79]
    assert all("connection lost" in lines[rank][-1]["reason"] for rank in (0, 2))
    # Whoever reads it second may see the other survivor go too.
    assert all(1 in lines[rank][-1]["peers"] for rank in (0, 2))


def test_stopped_rank_is_late_and_ends_the_group() -> None:
    def work(rank: int, group: Any) -> None:
        _reduce(rank, group)
        if rank == 2:
            os.kill(os.getpid(), signal.SIGSTOP)
        _reduce(rank, group)

    made = Ranks(work)
    begin = time.monotonic()
    assert [made._code(pid) for pid in made.pids[:2]] == [79, 79]
    assert time.monotonic() - begin < 20
    os.kill(made.pids[2], signal.SIGKILL)
    reasons = [made.lines(rank)[-1] for rank in (0, 1)]
    assert any(line["peers"] == [2] and "no message in 2 s" in line["reason"] for line in reasons)


def test_ranks_out_of_step_are_named() -> None:
    def work(rank: int, group: Any) -> None:
        group.all_reduce(torch.ones(576 + (rank == 1)))

    codes, lines = ranks(work)
    assert codes == [79, 79, 79]
    assert any("it sent collective kind 0x100" in each[-1]["reason"] for each in lines)


def test_hook_that_raises_ends_the_rank() -> None:
    def work(rank: int, group: Any) -> None:
        if rank == 0:
            group.all_reduce("no tensor")
        _reduce(rank, group)

    codes, lines = ranks(work)
    assert codes == [79, 79, 79]
    assert "AttributeError" in lines[0][-1]["reason"]


def test_smaller_group_is_left_to_sglang() -> None:
    def work(rank: int, group: Any) -> None:
        group.world_size = 1
        assert group.all_reduce(torch.ones(3)).tolist() == [1, 1, 1]

    assert ranks(work)[0] == [0, 0, 0]


def _reduce(rank: int, group: Any) -> None:
    assert group.all_reduce(torch.full((576,), float(rank))).eq(3).all()


def ranks(*args: Any, **kwargs: Any) -> tuple[list[int], list[list[dict[str, Any]]]]:
    """Run a scenario to its end; a rank's own words are shown when the test fails."""
    made = Ranks(*args, **kwargs)
    found = made.wait()
    for rank in range(SIZE):
        print(f"-- rank {rank}\n{made.text(rank)}")
    return found
