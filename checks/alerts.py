"""Builder of the check `alerts`: promtool reads the rules, their tests, and the dashboard's expressions."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

# What Grafana puts in before it asks.
GIVEN = {"$__rate_interval": "1m", "$fleet": "f"}


def main() -> None:
    """Run each; what promtool says of a failure goes to the build's log."""
    work = Path.cwd()
    for folder in ("monitoring", "tests"):
        for file in Path(os.environ[folder]).iterdir():
            shutil.copyfile(file, work / file.name)
    dashboard = json.loads((work / "sparkserve.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    if not asked:
        sys.exit("the dashboard asks for nothing")
    (work / "dashboard.yml").write_text(rules(asked))
    promtool("check", "rules", "alerts.yml", "dashboard.yml")
    promtool("test", "rules", "alerts_test.yml")

    # Both find a mistake.
    (work / "wrong.yml").write_text(rules(["sum by (fleet (up)"]))
    promtool("check", "rules", "wrong.yml", good=False)
    alerts = (work / "alerts.yml").read_text()
    changed = alerts.replace("sparkserve_link_carrier == 0", "sparkserve_link_carrier == 1")
    if changed == alerts:
        sys.exit("alerts.yml has no sparkserve_link_carrier == 0 to change")
    (work / "alerts.yml").write_text(changed)
    promtool("test", "rules", "alerts_test.yml", good=False)
    Path(os.environ["out"]).touch()


def rules(expressions: list[str]) -> str:
    """A rule file, as JSON, which YAML is too, that records each expression."""
    for variable, value in GIVEN.items():
        expressions = [each.replace(variable, value) for each in expressions]
    recorded = [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(expressions)]
    return json.dumps({"groups": [{"name": "dashboard", "rules": recorded}]})


def promtool(*arguments: str, good: bool = True) -> None:
    """Run it, which must end well, or badly unless `good`."""
    libraries = os.environ["libraries"]
    loader = f"{libraries}/ld-linux-x86-64.so.2"
    argv = [loader, "--library-path", libraries, os.environ["promtool"], *arguments]
    done = subprocess.run(argv, capture_output=True, text=True)
    if (done.returncode == 0) != good:
        sys.exit(f"promtool {' '.join(arguments)} ends with {done.returncode}:\n{done.stdout}{done.stderr}")


main()
