"""What every judge needs: a virtual environment of its own, a server of this repository, a report.

A judge is a public client or test tool that knows nothing of this server. Its script runs under any Python from 3.11 on; it moves
into the judge's environment by itself, so nothing has to be installed before.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
import venv
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

REPOSITORY = Path(__file__).resolve().parent.parent
TARGET = REPOSITORY / "models/smollm2-135m-instruct"
MODEL = TARGET.name
API_KEY = "judge"
# The embedded model's own template shows no tools.
TOOL_TEMPLATE = REPOSITORY / "test/golden/fixtures/tokenizer-qwen3/chat_template.jinja"
KEY_OPTIONS = ("--api-key", API_KEY)
COMMON_OPTIONS = ("--max-num-seqs", "4", "--vllm-metric-aliases", "--log-format", "json")


@dataclass(frozen=True)
class Judge:
    """One judge at work.

    name: of its environment and its report. work: folder for everything that is not kept.
    requirements: what pip installs, each pinned as `package==version`.
    commit: what is judged. changed: files that were not as in it at the start.
    """

    name: str
    work: Path
    requirements: tuple[str, ...]
    commit: str
    changed: tuple[str, ...]

    @property
    def environment(self) -> Path:
        return self.work / self.name

    def scratch(self) -> Path:
        """An empty folder."""
        folder = self.work / f"{self.name}-run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def tool(self, name: str) -> str:
        """A program of the environment."""
        return str(self.environment / "bin" / name)

    def versions(self) -> dict[str, str]:
        names = [requirement.partition("==")[0] for requirement in self.requirements]
        return {name: importlib.metadata.version(name) for name in names}


def start(name: str, *requirements: str) -> Judge:
    """Goes on in the environment of the judge, made in the folder of `--work` if it is not there.

    Ends the program where the code is not that of its commit, unless `--allow-dirty` is given.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, required=True, help="folder for environments and logs")
    parser.add_argument("--allow-dirty", action="store_true", help="judge code that is not committed; the report names what changed")
    given = parser.parse_args()
    commit = git("rev-parse", "--short", "HEAD")
    changed = changed_since(commit)
    if changed and not given.allow_dirty:
        files = "".join(f"\n  {file}" for file in changed)
        parser.exit(2, f"Expected the code of commit {commit}, got changes in:{files}\nCommit them, or judge them with --allow-dirty.\n")
    judge = Judge(name, given.work.resolve(), requirements, commit, changed)
    if Path(sys.prefix).resolve() == judge.environment.resolve():
        return judge
    python = judge.tool("python")
    if not Path(python).exists():
        venv.create(judge.environment, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
    os.execv(python, [python, *sys.argv])


@contextmanager
def served(judge: Judge, *options: str, shows_tools: bool = False) -> Iterator[str]:
    """Serves the embedded pair on a free port.

    options: of `serve`, beside COMMON_OPTIONS. shows_tools: with a chat template that tells the model of tools.
    Yields the base URL, without `/v1`.
    """
    log = judge.work / f"{judge.name}-server.log"
    with tempfile.TemporaryDirectory() as folder, log.open("w") as lines:
        target = with_template(Path(folder)) if shows_tools else TARGET
        models = ("--target", str(target), "--drafter", f"{TARGET}-dflash")
        command = ["node", str(REPOSITORY / "bin/blockdraft.js"), "serve", "--port", "0", *models, *COMMON_OPTIONS, *options]
        server = subprocess.Popen(command, stderr=lines, stdout=subprocess.DEVNULL)
        try:
            yield listening(server, log)
        finally:
            server.terminate()
            server.wait(60)


def listening(server: subprocess.Popen[bytes], log: Path) -> str:
    """The URL that the server says it listens on."""
    for _ in range(600):
        for line in log.read_text().splitlines():
            said = json.loads(line)
            if said["message"] == "listening":
                return said["url"]
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError(f"Expected the server to listen, got {log.read_text()[-2000:]}")


def with_template(folder: Path) -> Path:
    target = folder / MODEL
    target.mkdir()
    for file in TARGET.iterdir():
        (target / file.name).symlink_to(file)
    (target / TOOL_TEMPLATE.name).unlink(missing_ok=True)
    shutil.copy(TOOL_TEMPLATE, target)
    return target


def counters(url: str) -> dict[str, float]:
    """Samples of `/metrics` by name, summed over their labels."""
    request = urllib.request.Request(f"{url}/metrics", headers={"authorization": f"Bearer {API_KEY}"})
    with urllib.request.urlopen(request) as response:
        text = response.read().decode()
    sums: dict[str, float] = {}
    for name, value in re.findall(r"^([a-zA-Z_:][\w:]*)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        sums[name] = sums.get(name, 0) + float(value)
    return sums


def growth(before: dict[str, float], after: dict[str, float], prefix: str) -> dict[str, float]:
    """How much the counters with the prefix grew, by the rest of their names."""
    return {name[len(prefix) :]: after[name] - before.get(name, 0) for name in after if name.startswith(prefix)}


def report(judge: Judge, options: tuple[str, ...], results: dict[str, Any]) -> None:
    """Writes what was judged, by what, and what came out to `reports/`."""
    judged = {
        "commit": judge.commit,
        # Workers and jobs read the code as late as they start.
        "changed": sorted({*judge.changed, *changed_since(judge.commit)}),
        "node": run("node", "--version"),
        "options": [*COMMON_OPTIONS, *options],
    }
    judges = {"python": platform.python_version(), **judge.versions()}
    document = {"date": date.today().isoformat(), "judged": judged, "judge": judges, "results": results}
    path = REPOSITORY / "judges/reports" / f"{judge.name}.json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    print(json.dumps(results, indent=2, ensure_ascii=False))


def changed_since(commit: str) -> tuple[str, ...]:
    """Files that are not as in the commit, but for the reports, which no judge reads."""
    paths = ("--", ".", ":!judges/reports")
    tracked = git("diff", "--name-only", commit, *paths)
    added = git("ls-files", "--others", "--exclude-standard", *paths)
    return tuple(sorted({*tracked.splitlines(), *added.splitlines()}))


def git(*arguments: str) -> str:
    return run("git", *arguments)


def run(*command: str) -> str:
    return subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.strip()


def judged(checks: Iterable[Callable[[Any], None]], given: Any) -> tuple[dict[str, str], bool]:
    """Runs each check with what is given.

    Returns what came of them by name, and whether all passed.
    """
    outcomes: dict[str, str] = {}
    for check in checks:
        try:
            check(given)
            outcomes[check.__name__] = "passed"
        except Exception as error:
            outcomes[check.__name__] = f"failed: {type(error).__name__}: {error}"[:600]
            traceback.print_exc()
    return outcomes, all(outcome == "passed" for outcome in outcomes.values())


def prompts() -> list[str]:
    """What the bench asks: real questions, since acceptance of random tokens means nothing."""
    kinds = json.loads((REPOSITORY / "bench/prompts.json").read_text())
    return [prompt for kind in kinds.values() for prompt in kind]
