"""What a run measures and how often: the defaults, each with its reason."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sparkserve.bench.workloads.texts import Kind  # noqa: TC001 - pydantic reads it

Mode = Literal["decode", "prefill", "sampled", "prefix", "admission", "mixed"]


class Settings(BaseModel):
    """Of one run; equal settings and seed send equal prompts.

    `cases` and `streams` are of decode and sampled; `sizes` (tokens) and `texts` of modes with long prompts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    mode: Mode = "decode"
    seed: int = 0
    # The four that both tables of the seeds have; the others differ in how well they draft.
    cases: tuple[str, ...] = ("prose", "code", "json", "structured")
    streams: tuple[int, ...] = (1, 2, 4, 8, 16)  # of both tables too
    tokens: int = Field(default=256, ge=2)  # of both tables; at 63 tokens/s a sample takes 4 s
    sizes: tuple[int, ...] = (2048, 32768, 65536, 131072)
    texts: tuple[Kind, ...] = ("real",)
    # The pilot of the stopping rule, whose spread counts: with 3 an interval is 4.3 times its standard error
    # wide, with 5 it is 2.8 times.
    min: int = Field(default=5, ge=1)
    # 20 points of 12 samples of 10 s are 40 minutes: as long as a boot may take among several.
    max: int = Field(default=12, ge=1)
    # Percent. Two boots of one engine differ by about 3 % (owen 6.5) and are what a comparison counts: to
    # know one of them better than that takes time and adds nothing.
    precision: float = Field(default=2.0, gt=0)
    # The least of a point in sampled: what is accepted in one answer says little.
    requests: int = Field(default=32, ge=1)
    warm_up: bool = True  # the first of a point is slow (JIT, autotuning: mia 9.4)

    @property
    def metric(self) -> str:
        """What the stopping rule looks at: the engine's own time where there is one (issue I05)."""
        return {"prefill": "prefill_tps", "prefix": "ttft_s", "admission": "ttft_s"}.get(self.mode, "step_ms")
