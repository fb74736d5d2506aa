"""AIPerf profiles the served pair, and reads each answer's record of speculation as that of vLLM.

    python3 judges/judge_aiperf.py --work FOLDER

AIPerf refuses records that contradict themselves, and leaves a request without a valid one out of its acceptance metrics. So all
requests must have one. What it pools over them is held against the counters that have vLLM's names.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import MODEL, TARGET, Judge, counters, growth, prompts, report, served, start

# Without a key, because AIPerf sends none when it reads /metrics. Drafts are made whatever they cost, so that there is much to read.
OPTIONS = ("--max-context", "1024", "--draft-tokens", "5", "--per-request-spec-decode-metrics", "detailed")
MAX_TOKENS = 48
REQUESTS = 8
COUNTERS = ("spec_decode_num_drafts", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens")
RUNS = {"whole": (), "streamed": ("--streaming",)}


def main() -> int:
    judge = start("aiperf", "aiperf==0.13.0")
    folder = judge.scratch()
    lines = folder / "prompts.jsonl"
    lines.write_text("".join(json.dumps({"text": prompt}) + "\n" for prompt in prompts()[:REQUESTS]))
    results: dict[str, Any] = {}
    with served(judge, *OPTIONS) as url:
        for name, flags in RUNS.items():
            before = counters(url)
            measured = profile(judge, url, lines, flags, folder / name)
            results[name] = {**measured, "server": told(growth(before, counters(url), "vllm:"))}
            results[name]["agrees"] = agrees(results[name])
    report(judge, OPTIONS, results)
    return 0 if all(measured["agrees"] for measured in results.values()) else 1


def profile(judge: Judge, url: str, lines: Path, flags: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """What its own exports say of one run."""
    extra = {"max_tokens": MAX_TOKENS, "temperature": 0}
    command = [judge.tool("aiperf"), "profile", "--model", MODEL, "--tokenizer", str(TARGET), "--url", url]
    command += ["--endpoint-type", "chat", "--input-file", str(lines), "--custom-dataset-type", "single_turn", *flags]
    command += ["--concurrency", "4", "--request-count", str(REQUESTS), "--extra-inputs", json.dumps(extra), "--use-server-token-count"]
    command += ["--ui", "none", "--no-gpu-telemetry", "--artifact-dir", str(folder)]
    output = subprocess.run(command, capture_output=True, text=True)
    folder.mkdir(exist_ok=True)
    (folder / "output.txt").write_text(output.stdout + output.stderr)
    output.check_returncode()
    exported = json.loads((folder / "profile_export_aiperf.json").read_text())
    histogram = {int(accepted): count for accepted, count in exported["pooled_spec_decode_acceptance_histogram"].items()}
    return {
        "requests": exported["request_count"]["avg"],
        "errors": exported["error_summary"],
        "records_of_speculation": exported["spec_decode_acceptance_length"]["count"],
        "prompt_tokens": exported["total_isl"]["avg"],
        "output_tokens": exported["total_osl"]["avg"],
        "verify_steps": sum(histogram.values()),
        "accepted_tokens": sum(accepted * count for accepted, count in histogram.items()),
        "acceptance_length": round(exported["spec_decode_token_weighted_acceptance_length"]["avg"], 3),
        "metrics_read": metrics_read(folder / "server_metrics_export.json"),
    }


def metrics_read(export: Path) -> dict[str, float]:
    """How much the counters of speculation grew, as AIPerf read them from /metrics."""
    read = json.loads(export.read_text())["metrics"]
    return {name: sum(series["stats"]["total"] for series in read[f"vllm:{name}"]["series"]) for name in COUNTERS}


def told(grown: dict[str, float]) -> dict[str, float]:
    """The same numbers by the server's counters, and the acceptance length by vLLM's formula."""
    drafts, accepted = grown["spec_decode_num_drafts_total"], grown["spec_decode_num_accepted_tokens_total"]
    return {
        "requests": grown["request_success_total"],
        "prompt_tokens": grown["request_prompt_tokens_sum"],
        "output_tokens": grown["generation_tokens_total"],
        "verify_steps": drafts,
        "accepted_tokens": accepted,
        "acceptance_length": round(1 + accepted / drafts, 3),
    }


def agrees(measured: dict[str, Any]) -> bool:
    server = measured["server"]
    return (
        all(measured[name] == value for name, value in server.items())
        and measured["errors"] == []
        and measured["records_of_speculation"] == measured["requests"] == REQUESTS
    )


if __name__ == "__main__":
    sys.exit(main())
