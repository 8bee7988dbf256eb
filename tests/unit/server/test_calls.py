"""Calls: answered in time, told about while they last, joined where they go on."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from local_vector_search_mcp.errors import InvalidArgument, TimedOut
from local_vector_search_mcp.server import calls
from local_vector_search_mcp.server.calls import CallRunner, Progress
from local_vector_search_mcp.server.toolspec import Answer, Structured

DONE = Structured({"done": True})


class Gate:
    """Work that ends when it is told to, and counts how often it was begun."""

    def __init__(self, answer: Callable[[], Answer] = lambda: DONE) -> None:
        self.open = threading.Event()
        self.begun = 0
        self._answer = answer

    def __call__(self, progress: Progress) -> Answer:
        self.begun += 1
        progress.report(1, 4, "first")
        assert self.open.wait(10)
        return self._answer()


def run(scenario: Callable[[CallRunner], Any], *, within_s: float = 0.05) -> Any:
    async def main() -> Any:
        runner = CallRunner(answer_within_s=within_s)
        try:
            return await scenario(runner)
        finally:
            runner.close()

    return asyncio.run(main())


async def leave(runner: CallRunner, gate: Gate, **arguments: Any) -> None:
    with pytest.raises(TimedOut) as caught:
        await runner.run("kb_read", arguments, gate, None)
    assert caught.value.details == {"state": "running"}


def test_calls__done_in_time() -> None:
    """A call that ends in time gives its answer."""

    async def scenario(runner: CallRunner) -> Answer:
        gate = Gate()
        gate.open.set()
        return await runner.run("kb_read", {}, gate, None)

    assert run(scenario, within_s=5) is DONE


def test_calls__failure_passes() -> None:
    """What the work raises, the call raises."""

    def fail() -> Answer:
        raise InvalidArgument("no")

    async def scenario(runner: CallRunner) -> None:
        gate = Gate(fail)
        gate.open.set()
        with pytest.raises(InvalidArgument):
            await runner.run("kb_read", {}, gate, None)

    run(scenario, within_s=5)


def test_calls__same_call_joins_what_goes_on() -> None:
    """The same call made again returns the result of the first; the work is done once."""

    async def scenario(runner: CallRunner) -> None:
        gate = Gate()
        await leave(runner, gate, path="a.md")
        await leave(runner, gate, path="a.md")
        gate.open.set()
        assert await runner.run("kb_read", {"path": "a.md"}, gate, None) is DONE
        assert gate.begun == 1

    run(scenario)


def test_calls__finished_meanwhile_is_kept_once() -> None:
    """A result that came too late waits for the same call; the call after that works anew."""

    async def scenario(runner: CallRunner) -> None:
        gate = Gate()
        await leave(runner, gate)
        gate.open.set()
        assert await runner.run("kb_read", {}, gate, None) is DONE
        assert await runner.run("kb_read", {}, gate, None) is DONE
        assert gate.begun == 2

    run(scenario, within_s=0.2)


def test_calls__another_call_does_not_join() -> None:
    """Other arguments, or another tool, are other work."""

    async def scenario(runner: CallRunner) -> None:
        gate = Gate()
        await leave(runner, gate, path="a.md")
        await leave(runner, gate, path="b.md")
        gate.open.set()
        assert gate.begun == 2

    run(scenario)


def test_calls__cancelled_call_is_joined_while_it_lasts() -> None:
    """Work that a client stopped waiting for is joined by the same call, and forgotten once it has ended."""

    async def scenario(runner: CallRunner) -> None:
        gate = Gate()
        waiting = asyncio.create_task(runner.run("kb_read", {}, gate, None))
        while not gate.begun:
            await asyncio.sleep(0.001)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        again = asyncio.create_task(runner.run("kb_read", {}, gate, None))
        await asyncio.sleep(0.01)
        gate.open.set()
        assert await again is DONE
        assert gate.begun == 1
        assert await runner.run("kb_read", {}, gate, None) is DONE
        assert gate.begun == 2

    run(scenario, within_s=5)


def test_calls__progress_is_sent_and_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client hears what is done, and that the work goes on, in values that always grow."""
    monkeypatch.setattr(calls, "PROGRESS_EVERY_S", 0.02)
    monkeypatch.setattr(calls, "_LOOK_EVERY_S", 0.01)
    heard: list[tuple[float, float | None, str | None]] = []

    async def scenario(runner: CallRunner) -> None:
        gate = Gate()

        async def send(done: float, total: float | None, message: str | None) -> None:
            heard.append((done, total, message))
            if len(heard) == 4:
                gate.open.set()

        assert await runner.run("kb_read", {}, gate, send) is DONE

    run(scenario, within_s=5)
    values = [done for done, _, _ in heard]
    assert len(values) >= 4
    assert values == sorted(set(values))
    assert heard[0] == (1, 4, "first")


def test_calls__progress_of_later_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phase that counts anew, from nothing known, goes on where the last one ended, with a total over all of them."""
    monkeypatch.setattr(calls, "_LOOK_EVERY_S", 0.01)
    heard: list[tuple[float, float | None, str | None]] = []
    reports = ((0, 0, "scan"), (500, 500, "parse"), (0, 0, "embed"), (128, 300, "embed"), (300, 300, "embed"))

    def work(progress: Progress) -> Answer:
        pause = threading.Event()
        for number, report in enumerate(reports, start=1):
            progress.report(*report)
            while len(heard) < number:
                pause.wait(0.001)
        return DONE

    async def scenario(runner: CallRunner) -> None:
        async def send(done: float, total: float | None, message: str | None) -> None:
            heard.append((round(done), total, message))

        assert await runner.run("kb_reindex", {}, work, send) is DONE

    run(scenario, within_s=10)
    assert heard[:5] == [
        (0, None, "scan"),
        (500, 500, "parse"),
        (500, None, "embed"),
        (628, 800, "embed"),
        (800, 800, "embed"),
    ]


def test_calls__a_crash_after_leaving_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Work that fails when nobody waits any more still leaves a trace."""

    def crash() -> Answer:
        raise RuntimeError("late")

    async def scenario(runner: CallRunner) -> None:
        gate = Gate(crash)
        await leave(runner, gate)
        gate.open.set()
        with pytest.raises(RuntimeError):
            await runner.run("kb_read", {}, gate, None)

    run(scenario, within_s=0.2)
    assert "failed after it was left" in caplog.text
