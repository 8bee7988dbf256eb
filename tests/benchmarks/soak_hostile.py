"""Soak: hostile calls of every tool against a real server process; only documented answers, and nothing outside.

``python tests/benchmarks/soak_hostile.py [--calls 20000] [--seconds 300] [--seed 1] [--each 2500]``. A new tree and a
new process serve every ``--each`` calls, which are sent in small bursts. What breaks a rule is printed with the call;
the exit code is 1 then.
"""

import argparse
import base64
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from tests.support.hostile_tree import MARK, HostileTree, build_hostile_tree  # noqa: E402
from tests.support.nasty_calls import NastyCalls  # noqa: E402
from tests.support.spec_examples import spec_texts  # noqa: E402
from tests.support.stdio_client import Message, StdioClient, server_command  # noqa: E402

from local_vector_search_mcp import errors  # noqa: E402

_CODES = {
    kind.code
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.KnowledgeBaseError)
} - {"INTERNAL", "INVALID_CONFIG"}
_PROTOCOL_CODES = {-32602, -32700}
_LONGEST_S = 5.0
_LONG_CALLS = {"kb_create_pdf_book": 50.0, "kb_reindex": 50.0}
_SURELY_HANGING_S = 30.0
_BURST = 4
_LEAKS = (
    "Traceback",
    "pydantic",
    "validation error",
    'File "',
    "apsw.",
    "sqlite3.",
    "OSError",
    "Errno",
    "site-packages",
)


@dataclass(slots=True)
class Report:
    """What was seen."""

    calls: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    slowest: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    problems: Counter[str] = field(default_factory=Counter[str])

    def problem(self, what: str, call: Any) -> None:
        """Note a broken rule; only the first ones of a kind are printed."""
        self.problems[what] += 1
        if self.problems[what] <= 3:
            print(f"PROBLEM {what}\n  {_short(call)}", flush=True)


def main() -> int:
    """Run until the calls or the seconds are used up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=2_500, help="calls for one server process")
    options = parser.parse_args()
    report = Report()
    until = time.monotonic() + options.seconds
    episode = 0
    while report.calls < options.calls and time.monotonic() < until:
        with tempfile.TemporaryDirectory(prefix="lvs-hostile-", ignore_cleanup_errors=True) as folder:
            _Episode(Path(folder), options.seed * 1_000 + episode, report).run(
                min(options.each, options.calls - report.calls), until
            )
        episode += 1
        print(f"{report.calls} calls, {sum(report.problems.values())} problems", flush=True)
    print(f"{report.calls} calls, {episode} processes: {dict(report.outcomes.most_common())}")
    print("slowest:", [f"{seconds:.2f} s {what}" for seconds, what in sorted(report.slowest, reverse=True)[:8]])
    for what, count in report.problems.most_common():
        print(f"{count:6} {what}")
    return 1 if report.problems else 0


class _Episode:
    """One tree and one server process."""

    def __init__(self, folder: Path, seed: int, report: Report) -> None:
        self._tree: HostileTree = build_hostile_tree(folder)
        self._report = report
        self._rng = random.Random(seed)
        options = ("--scope", "full", "--embedding-provider", "none")
        self._client = StdioClient(server_command(self._tree.root, *options), timeout_s=70, cwd=folder)
        self._client.initialize()
        tools = self._client.request("tools/list")["result"]["tools"]
        self._outputs = {
            tool["name"]: jsonschema.Draft202012Validator(tool["outputSchema"])
            for tool in tools
            if "outputSchema" in tool
        }
        self._maker = NastyCalls(tools, spec_texts(), seed)

    def run(self, calls: int, until: float) -> None:
        """Send bursts of calls, check each answer, and then the surroundings."""
        report = self._report
        last: Any = None
        try:
            while calls > 0 and time.monotonic() < until:
                burst = [self._maker.call() for _ in range(min(calls, self._rng.randint(1, _BURST)))]
                calls -= len(burst)
                last = burst
                self._burst(burst)
        except (TimeoutError, OSError) as error:
            report.problem(f"the server is gone or silent: {str(error)[:200]}", last)
            report.problem(self._client.errors()[-1500:], "standard error")
        for what in self._tree.touched():
            report.problem(f"outside the root: {what}", None)
        if self._client.stray:
            report.problem("output that is no message", self._client.stray[:3])
        try:
            self._client.close()
        except Exception as error:
            report.problem(f"does not end: {type(error).__name__}", None)
        if "Traceback" in self._client.errors():
            report.problem("a traceback in the log", self._client.errors()[-3000:])

    def _burst(self, burst: list[tuple[str, Any]]) -> None:
        sent = time.monotonic()
        ids = [self._send(name, arguments) for name, arguments in burst]
        for request_id, (name, arguments) in zip(ids, burst, strict=True):
            answer = self._client.wait(request_id)
            self._report.calls += 1
            self._check(name, arguments, answer)
        taken = time.monotonic() - sent
        allowed = max(_LONG_CALLS.get(name, _LONGEST_S) for name, _ in burst)
        if taken > allowed:
            self._slow(burst)
        self._report.slowest = sorted([*self._report.slowest, (taken, "+".join(name for name, _ in burst))])[-8:]

    def _slow(self, burst: list[tuple[str, Any]]) -> None:
        """Which call of a slow burst is slow by itself, and again."""
        for name, arguments in burst:
            times = [self._alone(name, arguments) for _ in range(2)]
            if min(times) > _LONG_CALLS.get(name, _LONGEST_S):
                self._report.problem(f"{name} takes too long", (times, arguments))

    def _alone(self, name: str, arguments: Any) -> float:
        """Seconds of one call by itself; where the machine is busy with others, those of its own work."""
        sent, worked = time.monotonic(), _worked_s(self._client.process.pid)
        answer = self._client.wait(self._send(name, arguments))
        taken, worked = time.monotonic() - sent, _worked_s(self._client.process.pid) - worked
        if '"code":"BUSY"' in str(answer):
            # Waiting for the lock that another call holds is bounded by itself.
            return 0.0
        return taken if taken > _SURELY_HANGING_S or worked == 0.0 else min(taken, worked)

    def _send(self, name: str, arguments: Any) -> str:
        request_id = f"c{self._rng.getrandbits(60)}"
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
        self._client.write(json.dumps(message, ensure_ascii=True))
        return request_id

    def _check(self, name: str, arguments: Any, answer: Message) -> None:
        report = self._report
        raw = json.dumps(answer, ensure_ascii=False)
        call = (name, arguments, answer)
        if MARK in raw:
            report.problem(f"{name} tells what stands outside", call)
        if "error" in answer:
            code = answer["error"].get("code")
            report.outcomes[str(code)] += 1
            if code not in _PROTOCOL_CODES:
                report.problem(f"{name}: JSON-RPC {code}", call)
            elif code == -32602 and isinstance(arguments, dict):
                report.problem(f"{name}: -32602 for an object", call)
            return
        result = answer["result"]
        if result.get("isError"):
            self._check_error(name, result, call)
        else:
            report.outcomes["success"] += 1
            self._check_success(name, result, call)

    def _check_error(self, name: str, result: Mapping[str, Any], call: Any) -> None:
        report = self._report
        if len(result["content"]) != 1 or "structuredContent" in result:
            report.problem(f"{name}: an error of another shape", call)
        text = result["content"][0]["text"]
        try:
            error = json.loads(text)
        except ValueError:
            report.problem(f"{name}: an error that is no JSON: {text[:200]}", call)
            return
        if not {"code", "message"} <= set(error) <= {"code", "message", "details"}:
            report.problem(f"{name}: an error with other keys", call)
        code = str(error["code"])
        report.outcomes[code] += 1
        if code not in _CODES:
            report.problem(f"{name}: {code} {error['message'][:200]}", call)
        for leak in _LEAKS:
            if leak in error["message"]:
                report.problem(f"{name}: its message holds {leak}", call)
        if len(text) > 20_000:
            report.problem(f"{name}: a {code} of more than 20,000 characters", (call[0], call[1], len(text)))
        self._maker.learn(error)

    def _check_success(self, name: str, result: Mapping[str, Any], call: Any) -> None:
        report = self._report
        value = result.get("structuredContent")
        if validator := self._outputs.get(name):
            if value is None:
                report.problem(f"{name}: no structured content", call)
                return
            failures: Iterator[Any] = validator.iter_errors(value)  # pyright: ignore[reportUnknownMemberType]
            for failure in failures:
                report.problem(f"{name}: does not fit its schema: {failure.message[:150]}", call)
            if name != "kb_search" and json.loads(result["content"][0]["text"]) != value:
                report.problem(f"{name}: its text is not its structured content", call)
        for block in result["content"]:
            resource = block.get("resource", {})
            if MARK.encode() in base64.b64decode(resource.get("blob", "")) or MARK in block.get("text", ""):
                report.problem(f"{name} tells what stands outside", call)
        self._maker.learn(value)


def _worked_s(pid: int) -> float:
    """Processor seconds of a process so far; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) < 1_500 else f"{text[:900]} … {text[-500:]}"


if __name__ == "__main__":
    sys.exit(main())
