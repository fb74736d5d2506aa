"""Schemathesis sends what /openapi.json allows and what it forbids, to every operation, and holds the answers against it.

    python3 judges/judge_schemathesis.py --work FOLDER
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Iterator
from urllib.request import Request, urlopen

from harness import API_KEY, KEY_OPTIONS, MODEL, REPOSITORY, report, served, start

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)
# Nothing is excluded. Drafters may be measured and replaced: the names are made up, so that the routes find no drafter to change.
OPTIONS = (*KEY_OPTIONS, "--max-context", "256", "--allow-trace", "--allow-validation", "--allow-drafter-swap")
# Empty ones, so that no path leads to a training run or to what an earlier job wrote.
FOLDERS = ("--drafter-dir", "--validation-dir")
CASES_PER_OPERATION = "20"
SEED = "1"


def main() -> int:
    judge = start("schemathesis", "schemathesis==4.32.5")
    folder = judge.scratch()
    with served(judge, *OPTIONS, *empty_folders(folder)) as url:
        cancelled_job(url)
        command = [judge.tool("schemathesis"), "--no-color", "run", f"{url}/openapi.json"]
        command += ["--header", f"Authorization: Bearer {API_KEY}", "--phases", "coverage,fuzzing", "--checks", ",".join(CHECKS)]
        command += ["--max-examples", CASES_PER_OPERATION, "--seed", SEED, "--continue-on-failure", "--workers", "2"]
        command += ["--generation-database", "none", "--request-timeout", "60", "--report", "ndjson", "--report-ndjson-path", str(folder / "events.ndjson")]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(REPOSITORY / "judges")}
        ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    (folder / "output.txt").write_text(ended.stdout + ended.stderr)
    results = summary(folder / "events.ndjson")
    results["verdict"] = ended.stdout.strip().splitlines()[-1].strip("= ")
    report(judge, (*OPTIONS, *FOLDERS), results)
    return ended.returncode


def empty_folders(folder: Path) -> Iterator[str]:
    for option in FOLDERS:
        empty = folder / option.strip("-")
        empty.mkdir()
        yield from (option, str(empty))


def cancelled_job(url: str) -> None:
    """So that the list of jobs has one to describe."""
    job = ask(url, "POST", f"/v1/drafters/{MODEL}-dflash/diagnose", b"{}")
    ask(url, "DELETE", f"/v1/drafters/jobs/{job['id']}")


def ask(url: str, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    with urlopen(Request(url + path, body, headers, method=method)) as response:
        return json.load(response)


def summary(events: Path) -> dict[str, Any]:
    """Cases by phase, and by operation: how many were to be accepted or refused, and which statuses came."""
    phases: Counter[str] = Counter()
    operations: dict[str, Counter[str]] = {}
    refused: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for line in events.read_text().splitlines():
        event = json.loads(line).get("ScenarioFinished")
        if event is None:
            continue
        recorded = event["recorder"]
        for checks in recorded["checks"].values():
            failures.update(f"{recorded['label']}: {check['name']}" for check in checks if check["status"] == "failure")
        for id, interaction in recorded["interactions"].items():
            case = recorded["cases"][id]["value"]
            response = interaction.get("response")
            if response is None or case.get("meta") is None:
                continue
            mode = case["meta"]["generation"]["mode"]
            phases[event["phase"]] += 1
            operations.setdefault(recorded["label"], Counter())[f"{mode} {response['status_code']}"] += 1
            if mode == "positive" and response["status_code"] == 400:
                refused[message(response)] += 1
    return {
        "cases": sum(phases.values()),
        "by_phase": dict(phases),
        "failures": dict(failures),
        "valid_but_refused": dict(refused.most_common(20)),
        "by_operation": {label: dict(sorted(counts.items())) for label, counts in sorted(operations.items())},
    }


def message(response: dict[str, Any]) -> str:
    content = response["content"]
    body = base64.b64decode(content["$base64"] if isinstance(content, dict) else content)
    return json.loads(body)["error"]["message"][:160]


if __name__ == "__main__":
    sys.exit(main())
