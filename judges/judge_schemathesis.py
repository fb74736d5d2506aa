"""Schemathesis sends what /openapi.json allows and what it forbids, to every operation, and holds the answers against it.

    python3 judges/judge_schemathesis.py --work FOLDER
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
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
OPTIONS = (*KEY_OPTIONS, "--drafter", "ngram", "--max-context", "256", "--allow-trace", "--allow-validation", "--allow-drafter-swap")
FOLDERS = ("--drafter-dir", "--validation-dir")
# Jobs by their routes below /v1/drafters. The folders are of this judge's making: no path that is made up leads to one.
DRAFTER = f"{MODEL}-dflash"
RUN, ANSWERS = "a-training-run", "an-earlier-validation"
CANCELLED_JOBS: dict[str, dict[str, Any]] = {
    f"{DRAFTER}/validate": {},
    f"{DRAFTER}/diagnose": {},
    f"{DRAFTER}/record": {"out": "a-recording"},
    "compare": {"drafters": [DRAFTER, "ngram"]},
    "export-hard": {"validation": ANSWERS},
    "watch": {"watch": [RUN]},
}
FINISHED_JOB = {"prompts": [{"prompt": "Say hi."}, {"prompt": "Name three colours."}], "max_tokens": 2, "out": "a-short-recording"}
# A pattern that it cannot read is left out of what it judges.
SETTINGS = '[warnings]\nfail-on = ["unsupported_regex"]\n'
CASES_PER_OPERATION = "20"
SEED = "1"


def main() -> int:
    judge = start("schemathesis", "schemathesis==4.32.5")
    folder = judge.scratch()
    (folder / "schemathesis.toml").write_text(SETTINGS)
    with served(judge, *OPTIONS, *folders_for_jobs(folder)) as url:
        jobs_to_describe(url)
        command = [judge.tool("schemathesis"), "--no-color", "run", f"{url}/openapi.json"]
        command += ["--header", f"Authorization: Bearer {API_KEY}", "--phases", "examples,coverage,fuzzing", "--checks", ",".join(CHECKS)]
        command += ["--max-examples", CASES_PER_OPERATION, "--seed", SEED, "--continue-on-failure", "--workers", "2"]
        command += ["--generation-database", "none", "--request-timeout", "60", "--report", "ndjson", "--report-ndjson-path", str(folder / "events.ndjson")]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(REPOSITORY / "judges")}
        ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    (folder / "output.txt").write_text(ended.stdout + ended.stderr)
    results = summary(folder / "events.ndjson")
    results["verdict"] = ended.stdout.strip().splitlines()[-1].strip("= ")
    report(judge, (*OPTIONS, *FOLDERS), results)
    return ended.returncode


def folders_for_jobs(folder: Path) -> Iterator[str]:
    """A training run without checkpoints, and a validation without answers."""
    drafters, output = (folder / option.strip("-") for option in FOLDERS)
    (drafters / RUN).mkdir(parents=True)
    (output / ANSWERS).mkdir(parents=True)
    (output / ANSWERS / "answers.jsonl").touch()
    yield from (FOLDERS[0], str(drafters), FOLDERS[1], str(output))


def jobs_to_describe(url: str) -> None:
    """So that the list of jobs has one of each kind, and one with a result."""
    for route, body in CANCELLED_JOBS.items():
        job = ask(url, "POST", f"/v1/drafters/{route}", body)
        ask(url, "DELETE", f"/v1/drafters/jobs/{job['id']}")
    job = ask(url, "POST", f"/v1/drafters/{DRAFTER}/record", FINISHED_JOB)
    while job["status"] == "running":
        time.sleep(0.2)
        job = ask(url, "GET", f"/v1/drafters/jobs/{job['id']}")
    if job["status"] != "succeeded":
        raise RuntimeError(f"Expected a job that succeeds, got {job}")


def ask(url: str, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
    sent = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, sent, headers, method=method)) as response:
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
        # A scenario that was skipped, as one without an example, has neither.
        recorded = {"checks": {}, "interactions": {}, **event["recorder"]}
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
