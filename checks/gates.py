"""Builder of the check: starts the engine, runs the quick gates of the plan, keeps their evidence in $out.

in (environment): closure (a folder with plan.json and closure.json).
"""

import asyncio
import os
import sys
from pathlib import Path

from sparkserve import plan as plans
from sparkserve.engine import closure as closures
from sparkserve.engine import once
from sparkserve.errors import SparkserveError
from sparkserve.gates import runner, subject
from sparkserve.output import print_error

SEED = 1  # of the random prompts, so that each build asks the same

path = Path(os.environ["closure"])
plan, closure = plans.load(path / "plan.json"), closures.load(path)
if not plan.gates:
    sys.exit("the plan declares no gates, so this check would prove nothing")
try:
    with once.serving(plan, closure, path) as run:
        asked = subject.of_endpoint(run.endpoint, run.model).subject
        ids = {"fleet": run.fleet, "fleet_id": run.fleet_id, "plan_sha256": subject.digest(plan)}
        order = runner.Order(asked.model_copy(update=ids), quick=True, seed=SEED, plan=plan)
        found = asyncio.run(runner.run(plan.gates, order, Path(os.environ["out"])))
        # Said once more, below the engine's log: a failed build keeps no evidence.
        failed = [line for evidence, _ in found if not evidence.passed for line in runner.words(evidence)]
        if failed:
            sys.exit("\n".join(failed))
except SparkserveError as error:
    print_error(error, as_json=False)
    sys.exit(error.exit_code)
