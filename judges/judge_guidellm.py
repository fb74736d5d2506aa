"""GuideLLM measures the served pair with real prompts, one at a time and four at a time; its counts are held against the server's.

    python3 judges/judge_guidellm.py --work FOLDER
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness import API_KEY, KEY_OPTIONS, MODEL, TARGET, Judge, counters, growth, prompts, report, served, start

# Drafts are made whether they pay or not: where none does, several tokens at once are not judged.
OPTIONS = (*KEY_OPTIONS, "--max-context", "1024", "--draft-tokens", "5")
MAX_TOKENS = 48
REQUESTS = 8
PROFILES = {"synchronous": "kind=synchronous", "concurrent": "kind=concurrent,streams=4"}


def main() -> int:
    judge = start("guidellm", "guidellm==0.8.1")
    folder = judge.scratch()
    lines = folder / "prompts.txt"
    lines.write_text("\n".join(prompts()) + "\n")
    results: dict[str, Any] = {}
    with served(judge, *OPTIONS) as url:
        for name, profile in PROFILES.items():
            before = counters(url)
            measured = benchmark(judge, url, lines, profile, folder / name)
            results[name] = {**measured, "server": told(growth(before, counters(url), "vllm:"))}
    for measured in results.values():
        measured["agrees"] = agrees(measured)
    report(judge, OPTIONS, results)
    return 0 if all(measured["agrees"] for measured in results.values()) else 1


def benchmark(judge: Judge, url: str, lines: Path, profile: str, folder: Path) -> dict[str, Any]:
    """What its own report says of one run."""
    backend = f"kind=openai_http,target={url},model={MODEL},api_key={API_KEY},http2=false,max_tokens={MAX_TOKENS}"
    command = [judge.tool("guidellm"), "run", "--backend", backend, "--profile", profile]
    command += ["--constraint", f"kind=max_requests,count={REQUESTS}", "--data", f"kind=text_file,path={lines}"]
    command += ["--tokenizer", f"kind=hf_auto,model={TARGET}", "--output", f"kind=json,path={folder}.json", "--disable-progress"]
    output = subprocess.run(command, capture_output=True, text=True)
    folder.with_suffix(".txt").write_text(output.stdout + output.stderr)
    output.check_returncode()
    metrics = json.loads(folder.with_suffix(".json").read_text())["benchmarks"][0]["metrics"]
    return {
        "requests": metrics["request_totals"],
        "prompt_tokens": metrics["prompt_token_count"]["successful"]["total_sum"],
        "output_tokens": metrics["output_token_count"]["successful"]["total_sum"],
        "time_to_first_token_ms": round(metrics["time_to_first_token_ms"]["successful"]["median"], 1),
        "inter_token_latency_ms": round(metrics["inter_token_latency_ms"]["successful"]["median"], 1),
    }


def told(grown: dict[str, float]) -> dict[str, float]:
    """The same numbers by the server's counters, which have vLLM's names."""
    drafts = grown["spec_decode_num_drafts_total"]
    return {
        "requests": grown["request_success_total"],
        "prompt_tokens": grown["request_prompt_tokens_sum"],
        "prompt_tokens_computed_or_reused": grown["prompt_tokens_total"] + grown["prefix_cache_hits_total"],
        "output_tokens": grown["generation_tokens_total"],
        "mean_acceptance_length": round(1 + grown["spec_decode_num_accepted_tokens_total"] / drafts, 3),
    }


def agrees(measured: dict[str, Any]) -> bool:
    requests, server = measured["requests"], measured["server"]
    return (
        requests["successful"] == requests["total"] == server["requests"] == REQUESTS
        and measured["prompt_tokens"] == server["prompt_tokens"] == server["prompt_tokens_computed_or_reused"]
        and measured["output_tokens"] == server["output_tokens"]
    )


if __name__ == "__main__":
    sys.exit(main())
