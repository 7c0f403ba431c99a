"""What is under test: the fleet that answers, the plan it runs by, and what its engine says of itself."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from sparkserve import api_key
from sparkserve.client.client import Client
from sparkserve.errors import SparkserveError
from sparkserve.gates.contract import LOOK_S
from sparkserve.gates.evidence import Subject

if TYPE_CHECKING:
    from pathlib import Path

    from sparkserve.plan import Plan

# Of /server_info, which also tells every argument, some of them secret.
_SAID = ("version", "model_path", "served_model_name", "weight_version", "dtype", "attention_backend")


class Target(NamedTuple):
    """A subject, and the plan that it runs by; None for an endpoint that is no fleet of ours.

    `key_file` has the key that requests show; None where none is asked for.
    """

    subject: Subject
    plan: Plan | None
    key_file: Path | None = None


def of_fleet(name: str, key_file: Path | None = None) -> Target:
    """What serves for the fleet, asked with a key of `key_file`, or of the file that its plan names.

    Raises `ENGINE.STATE` unless it is ready, `FLEET.NAME`, `KEY.FILE` and `KEY.REFUSED`.
    """
    from sparkserve.local import fleets

    there, serving = fleets.ready(name)
    head, plan = there.report()[0], there.plan()
    boot, key_file = head["boot"], key_file or serving.key_file
    subject = Subject(
        endpoint=serving.endpoint,
        model=serving.model,
        fleet=name,
        fleet_id=head["fleet_id"],
        plan_sha256=digest(plan),
        boot=None if boot is None else str(boot),
        engine=_engine(serving.endpoint, key_file),
    )
    return Target(subject, plan, key_file)


def of_endpoint(endpoint: str, model: str, key_file: Path | None = None) -> Target:
    """Whoever answers there. Raises `ENGINE.STATE` when nobody does, `KEY.FILE`, `KEY.REFUSED`."""
    try:
        Client(endpoint)
    except ValueError as error:
        raise _nobody(endpoint, str(error)) from None
    engine = _engine(endpoint, key_file)
    return Target(Subject(endpoint=endpoint, model=model, engine=engine), None, key_file)


def digest(plan: Plan) -> str:
    """The sha256 of a plan's JSON, whose names are sorted."""
    text = json.dumps(plan.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _engine(endpoint: str, key_file: Path | None) -> dict[str, str]:
    found = server_info(endpoint, key_file)
    return {key: str(found[key]) for key in _SAID if found.get(key) is not None}


def server_info(endpoint: str, key_file: Path | None = None) -> dict[str, Any]:
    """What an SGLang says of itself; empty of another engine.

    Raises `ENGINE.STATE` when nobody answers, `KEY.FILE`, `KEY.REFUSED`.
    """
    import httpx

    headers = api_key.headers(key_file)
    try:
        # Not through a proxy of the environment, which reaches no loopback of ours.
        answer = httpx.get(f"{endpoint}/server_info", headers=headers, timeout=LOOK_S, trust_env=False)
        if answer.status_code == 401:
            raise api_key.refused(endpoint)
        said = answer.json() if answer.status_code == 200 else {}
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _nobody(endpoint, str(error) or type(error).__name__) from None
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _nobody(endpoint: str, found: str) -> SparkserveError:
    return SparkserveError(
        "ENGINE.STATE",
        expected="an endpoint that answers, such as http://127.0.0.1:8888",
        found=found,
        where=endpoint.rpartition("@")[2],
        do="Start what is to be tested there, or give --endpoint as http://HOST:PORT.",
    )
