"""The protocol over the pipes of a real process: every line answered, nothing stray, and a clean, quick end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.stdio_client import SOURCE, Era, StdioClient, child_environment

REPOSITORY = Path(__file__).resolve().parents[2]
IMPORTABLE = {"PYTHONPATH": os.pathsep.join((str(SOURCE), str(REPOSITORY)))}


def command(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.fake_server", str(root), *options]


def connect(root: Path, *options: str, era: Era = "2025", env: Mapping[str, str] | None = None) -> StdioClient:
    return StdioClient(command(root, *options), era=era, cwd=root, env={**IMPORTABLE, **(env or {})})


@pytest.fixture(scope="module", params=["2025", "2026"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioClient]:
    """A connection in each protocol era, shared by the tests that do not end it."""
    with connect(tmp_path_factory.mktemp("root"), era=request.param) as connected:
        yield connected
        assert connected.stray == []


def test_stdio__says_what_it_is(client: StdioClient) -> None:
    """The handshake names capabilities and describes the workspace that is there."""
    capabilities = client.server["capabilities"]
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert {"tools", "prompts", "completions"} <= set(capabilities)
    instructions = client.server["instructions"]
    assert "250 documents" in instructions
    assert "notes/ (250)" in instructions
    assert "Scope full" in instructions
    assert len(instructions) < 1500


def test_stdio__lists_tools_within_budget(client: StdioClient) -> None:
    """The whole answer as it goes over the wire is below the budget, with our own _meta and nothing else."""
    answer = client.request("tools/list")
    tools = answer["result"]["tools"]
    assert len(tools) == 25
    assert len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()) / 4 < 9_500
    for tool in tools:
        assert set(tool["_meta"]) <= {"requiredScope", "openai/fileParams"}
        assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert tool["title"]


def test_stdio__result_is_structured_and_text(client: StdioClient) -> None:
    """A result stands in the answer twice, as an object and as its JSON text."""
    result = client.call("kb_status")
    (block,) = result["content"]
    assert json.loads(block["text"]) == result["structuredContent"]
    assert result["structuredContent"]["warnings"] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("kb_read", {"path": "conflict.md"}, "CONFLICT"),
        ("kb_read", {"path": "crash.md"}, "INTERNAL"),
        ("kb_read", {"paht": "a.md"}, "INVALID_ARGUMENT"),
        ("kb_raed", {}, "UNKNOWN_TOOL"),
        ("__proto__", {}, "UNKNOWN_TOOL"),
    ],
)
def test_stdio__errors(client: StdioClient, tool: str, arguments: dict[str, Any], code: str) -> None:
    """A failure is one text block with code and message, and nothing from inside."""
    error = client.error(tool, arguments)
    assert error["code"] == code
    assert "secret" not in json.dumps(error)
    assert "Traceback" not in json.dumps(error)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ('{"name":"kb_status","arguments":[]}', -32602),
        ('{"name":"kb_status","arguments":"x"}', -32602),
        ('{"name":5,"arguments":{}}', -32602),
        ('{"arguments":{}}', -32602),
        ('{"name":"kb_read","arguments":{"path":"\\ud800"}}', -32700),
        ('{"name":"kb_read","arguments":{"path":' + "[" * 300 + "]" * 300 + "}}", -32700),
        ('{"name":"kb_read","arguments":{"path":' + "[" * 100_000, -32700),
        ('{"name":"kb_read","arguments":{"offset":' + "9" * 5_000 + "}}", -32700),
        ("[1]", -32700),
        ('{"name":"kb_status"', -32700),
    ],
)
def test_stdio__what_is_no_request_is_answered(client: StdioClient, params: str, code: int) -> None:
    """Whatever a client sends under an id is answered under that id."""
    request_id = f"id-{len(params)}-{client.era}"
    meta = "" if client.era == "2025" else _stamp(params)
    client.write(f'{{"jsonrpc":"2.0","id":"{request_id}","method":"tools/call","params":{meta or params}}}')
    assert client.wait(request_id)["error"]["code"] == code


def _stamp(params: str) -> str:
    stamp = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return params if params.startswith("[") else '{"_meta":' + json.dumps(stamp) + "," + params[1:]


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b'{"jsonrpc":"2.0"',
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'{"jsonrpc":"1.0","method":"ping"}',
        b"\xff\xfe{}",
        b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}',
        b"null",
        b"5",
        *(
            b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % each
            for each in (b"null", b"true", b"1.5", b"NaN", b"1e400", b"[1]", b"{}")
        ),
    ],
)
def test_stdio__lines_without_an_id_are_answered_with_null(client: StdioClient, line: bytes) -> None:
    """A line that is no message at all gets an answer too, and the connection goes on."""
    client.write(line)
    assert client.wait(None)["error"]["code"] == -32700
    assert client.value("kb_status")["scope"] == "full"


def test_stdio__blank_lines_and_late_endings(client: StdioClient) -> None:
    """Blank lines are nothing; CR before LF is blank space."""
    client.write(b"")
    client.write(b"   \r")
    assert client.value("kb_status")["scope"] == "full"


def test_stdio__text_of_every_script(client: StdioClient) -> None:
    """UTF-8 goes through in both directions, whatever the locale says."""
    path = "日本語/émoji 🎉/Ω\u2028.md"
    assert client.value("kb_read", {"path": path})["path"] == path


def test_stdio__calls_run_side_by_side(client: StdioClient) -> None:
    """A slow call holds up no other."""
    slow = client.send("tools/call", {"name": "kb_read", "arguments": {"path": "sleep-1"}})
    began = time.monotonic()
    client.value("kb_status")
    assert time.monotonic() - began < 0.8
    assert client.wait(slow)["result"]["structuredContent"]["path"] == "sleep-1"


def test_stdio__print_does_not_reach_the_protocol(client: StdioClient) -> None:
    """What a library prints goes to standard error."""
    client.value("kb_read", {"path": "print.md"})
    assert client.stray == []


def test_stdio__progress_keeps_a_call_alive(client: StdioClient) -> None:
    """A client that asks for progress hears something within five seconds."""
    began = time.monotonic()
    call = {"name": "kb_read", "arguments": {"path": "sleep-5.5"}, "_meta": {"progressToken": "t"}}
    request = client.send("tools/call", call)
    client.wait_until(lambda: any(n["method"] == "notifications/progress" for n in client.notifications))
    assert time.monotonic() - began < 5
    assert "result" in client.wait(request)


def test_stdio__large_messages(client: StdioClient) -> None:
    """A request of several megabytes arrives whole, and so does its answer."""
    path = "x" * (3 << 20)
    assert len(client.value("kb_read", {"path": path})["path"]) == len(path)


def test_stdio__results_above_the_limit_are_refused(client: StdioClient) -> None:
    """A message that would make the client hang up is never sent."""
    error = client.error("kb_read", {"path": "x" * (6 << 20)})
    assert error["code"] == "TOO_LARGE"


def test_stdio__resources_in_pages(client: StdioClient) -> None:
    """Documents come in pages of 200, after the status and the skill."""
    first = client.request("resources/list")["result"]
    names = [resource["uri"] for resource in first["resources"]]
    assert names[0] == "kb://status"
    assert "skill://knowledge-base/SKILL.md" in names
    assert sum(name.startswith("kb://document/") for name in names) == 200
    second = client.request("resources/list", {"cursor": first["nextCursor"]})["result"]
    assert len(second["resources"]) == 50
    assert "nextCursor" not in second


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("kb://document/missing.md", "NOT_FOUND"),
        ("kb://document/%2e%2e/secret.md", "INVALID_PATH"),
        ("kb://document/", "INVALID_PATH"),
        ("kb://document/a.md#heading", "INVALID_ARGUMENT"),
        ("kb://document/%ff.md", "INVALID_ARGUMENT"),
        ("kb://document/latin.md", "UNSUPPORTED_ENCODING"),
        ("kb://elsewhere", "NOT_FOUND"),
    ],
)
def test_stdio__resources_refused(client: StdioClient, uri: str, code: str) -> None:
    """A resource that cannot be read is an error with our code and the URI."""
    error = client.request("resources/read", {"uri": uri})["error"]
    assert (error["code"], error["data"]["code"], error["data"]["uri"]) == (-32602, code, uri)


def test_stdio__resources_read(client: StdioClient) -> None:
    """A document comes as it is, percent-encoding undone."""
    (content,) = client.request("resources/read", {"uri": "kb://document/a%20%23b/%C3%A9.md"})["result"]["contents"]
    assert content["text"] == "# a #b/é.md\r\n"
    assert content["mimeType"] == "text/markdown"


def test_stdio__skill_is_served(client: StdioClient) -> None:
    """The packaged skill can be read, and in the newer era listed as a skill."""
    (content,) = client.request("resources/read", {"uri": "skill://knowledge-base/SKILL.md"})["result"]["contents"]
    assert content["text"].startswith("---\nname: knowledge-base\n")
    if client.era == "2026":
        assert "knowledge-base" in json.dumps(client.request("skills/list")["result"])


def test_stdio__prompts(client: StdioClient) -> None:
    """Prompts are listed with arguments, filled in, and refused without what they need."""
    listed = client.request("prompts/list")["result"]["prompts"]
    assert [prompt["name"] for prompt in listed] == ["find_decisions", "summarise_section", "edit_safely"]
    got = client.request("prompts/get", {"name": "find_decisions", "arguments": {"topic": "caching"}})["result"]
    assert "caching" in got["messages"][0]["content"]["text"]
    for params in ({"name": "find_decisions"}, {"name": "other"}, {"name": "find_decisions", "arguments": {"x": "y"}}):
        assert client.request("prompts/get", params)["error"]["code"] == -32602


def test_stdio__completion(client: StdioClient) -> None:
    """Paths are completed in templates and prompts; anything else completes to nothing."""
    template = {"type": "ref/resource", "uri": "kb://document/{path*}"}
    prompt = {"type": "ref/prompt", "name": "edit_safely"}
    for ref, name, expected in ((template, "path", True), (prompt, "path", True), (prompt, "change", False)):
        params = {"ref": ref, "argument": {"name": name, "value": "notes/n00"}}
        values = client.request("completion/complete", params)["result"]["completion"]["values"]
        assert bool(values) is expected
        assert len(values) <= 100
    params = {"ref": template, "argument": {"name": "path", "value": "notes\\n00"}}
    assert client.request("completion/complete", params)["result"]["completion"]["values"] == []


@pytest.mark.parametrize("scope", ["read", "edit"])
def test_stdio__scopes(tmp_path: Path, scope: str) -> None:
    """A tool above the scope is not listed, and refused before its arguments are looked at."""
    with connect(tmp_path, "--scope", scope) as client:
        names = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        assert len(names) == {"read": 13, "edit": 23}[scope]
        assert "kb_delete" not in names
        error = client.error("kb_delete", {"nonsense": True})
        assert error["code"] == "PERMISSION_DENIED"
        assert error["details"] == {"requiredScope": "full", "scope": scope}
        assert client.error("kb_nothing")["code"] == "UNKNOWN_TOOL"
        assert ("kb_patch" in names) is (scope == "edit")


def test_stdio__hostile_directory(tmp_path: Path) -> None:
    """Neither a .env in the working directory nor FASTMCP_ variables reach the library."""
    settings = {
        "FASTMCP_LOG_LEVEL": "bogus",
        "FASTMCP_MASK_ERROR_DETAILS": "false",
        "FASTMCP_STRICT_INPUT_VALIDATION": "nonsense",
        "FASTMCP_TRANSPORT": "sse",
    }
    lines = "".join(f"{name}={value}\n" for name, value in settings.items())
    (tmp_path / ".env").write_text(lines, encoding="utf-8")
    with connect(tmp_path, env={**settings, "FASTMCP_ENV_FILE": ".env", "fastmcp_debug": "maybe"}) as client:
        assert client.value("kb_status")["scope"] == "full"
        assert "secret" not in json.dumps(client.error("kb_read", {"path": "crash.md"}))


def test_stdio__ends_with_its_input(tmp_path: Path) -> None:
    """Closing the input ends the process at once, with nothing stray and no traceback."""
    client = connect(tmp_path)
    client.initialize()
    began = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - began < 2
    assert client.stray == []
    assert "Traceback" not in client.errors()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stdio__ends_on_signals(tmp_path: Path, number: signal.Signals) -> None:
    """A signal ends the process within two seconds, even with a call that hangs."""
    client = connect(tmp_path)
    client.initialize()
    client.send("tools/call", {"name": "kb_read", "arguments": {"path": "sleep-30"}})
    client.value("kb_status")
    began = time.monotonic()
    client.process.send_signal(number)
    assert client.process.wait(5) == 0
    assert time.monotonic() - began < 2
    client.close()


def test_stdio__hanging_call_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A call that never ends does not outlive its client."""
    client = connect(tmp_path)
    client.initialize()
    client.send("tools/call", {"name": "kb_read", "arguments": {"path": "sleep-30"}})
    client.value("kb_status")
    began = time.monotonic()
    assert client.close() == 0
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("how", ["end of input", "signal"])
def test_stdio__slow_cleaning_up_does_not_hold_up_the_end(tmp_path: Path, how: str) -> None:
    """What the services do at the end has a limit too."""
    if how == "signal" and sys.platform == "win32":
        pytest.skip("signals of POSIX")
    client = connect(tmp_path, env={"TEST_CLOSE_S": "30"})
    client.initialize()
    began = time.monotonic()
    if how == "signal":
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(5) == 0
    assert client.close() == 0
    assert time.monotonic() - began < 2


@pytest.mark.skipif(sys.platform == "win32", reason="process tree of POSIX")
def test_stdio__ends_with_its_parent(tmp_path: Path) -> None:
    """A server whose parent was killed ends, even where someone else holds its input open."""
    server = command(tmp_path)
    script = (
        "import subprocess,sys; p=subprocess.Popen(sys.argv[1:]); print(p.pid, file=sys.stderr, flush=True); p.wait()"
    )
    read_end, write_end = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", script, *server],
        stdin=read_end,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=child_environment(IMPORTABLE),
    )
    os.close(read_end)
    assert parent.stderr is not None
    assert parent.stdout is not None
    child = int(parent.stderr.readline())
    os.write(write_end, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert json.loads(parent.stdout.readline())["id"] == 1
    parent.kill()
    parent.wait()
    began = time.monotonic()
    try:
        while _alive(child) and time.monotonic() - began < 5:
            time.sleep(0.05)
        assert not _alive(child)
        assert time.monotonic() - began < 2.5
    finally:
        os.close(write_end)
        parent.stderr.close()
        parent.stdout.close()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").is_dir()
    return state != "Z"


def test_stdio__input_and_output_as_files(tmp_path: Path) -> None:
    """Input from a file is answered into a file, and the process ends by itself."""
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "file", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "kb_status"}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list"},
    ]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    with source.open("rb") as stdin, target.open("wb") as stdout:
        done = subprocess.run(
            command(tmp_path),
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=child_environment(IMPORTABLE),
            timeout=30,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert sorted(answer["id"] for answer in answers) == [1, 2, 3]
    assert all("result" in answer for answer in answers)


def test_stdio__cancelled_call_is_not_answered(tmp_path: Path) -> None:
    """A call that the client cancels gets no answer; later ones do."""
    with connect(tmp_path) as client:
        slow = client.send("tools/call", {"name": "kb_read", "arguments": {"path": "sleep-1"}})
        client.value("kb_status")
        client.notify("notifications/cancelled", {"requestId": slow})
        time.sleep(1.2)  # Until the work that nobody waits for would have answered.
        client.value("kb_status")
        with pytest.raises(TimeoutError):
            client.wait_until(lambda: slow in client.answers, timeout_s=0.1)


def test_stdio__subscriptions_of_the_older_era(tmp_path: Path) -> None:
    """A client hears about the documents that it subscribed to, and about lists, until it unsubscribes."""
    (tmp_path / "a b.md").write_text("one", encoding="utf-8")
    with connect(tmp_path) as client:
        assert client.request("resources/subscribe", {"uri": "kb://document/a%20b.md"})["result"] == {}
        assert client.request("resources/subscribe", {"uri": "kb://outline/a%20%62.md"})["result"] == {}
        assert client.request("resources/subscribe", {"uri": "https://example.com/"})["result"] == {}
        (tmp_path / "a b.md").write_text("two", encoding="utf-8")
        client.wait_until(lambda: len(updates(client)) == 2)
        assert updates(client) == ["kb://document/a%20b.md", "kb://outline/a%20%62.md"]
        assert "notifications/resources/list_changed" not in methods(client)
        (tmp_path / "c.md").write_text("new", encoding="utf-8")
        client.wait_until(lambda: "notifications/resources/list_changed" in methods(client))
        client.request("resources/unsubscribe", {"uri": "kb://document/a%20b.md"})
        client.request("resources/unsubscribe", {"uri": "kb://outline/a%20%62.md"})
        client.request("resources/subscribe", {"uri": "kb://status"})
        client.notifications.clear()
        (tmp_path / "a b.md").write_text("three", encoding="utf-8")
        client.wait_until(lambda: updates(client) == ["kb://status"])


def test_stdio__subscriptions_of_the_newer_era(tmp_path: Path) -> None:
    """A client opens a stream and hears exactly what it asked for."""
    (tmp_path / "a.md").write_text("one", encoding="utf-8")
    with connect(tmp_path, era="2026") as client:
        wanted = {"resourcesListChanged": True, "resourceSubscriptions": ["kb://document/a.md"]}
        client.send("subscriptions/listen", {"notifications": wanted})
        client.wait_until(lambda: "notifications/subscriptions/acknowledged" in methods(client))
        (tmp_path / "a.md").write_text("two", encoding="utf-8")
        client.wait_until(lambda: updates(client) == ["kb://document/a.md"])
        (tmp_path / "b.md").write_text("new", encoding="utf-8")
        client.wait_until(lambda: "notifications/resources/list_changed" in methods(client))
        began = time.monotonic()
        assert client.close() == 0
        assert time.monotonic() - began < 2


def methods(client: StdioClient) -> list[str]:
    return [notification["method"] for notification in client.notifications]


def updates(client: StdioClient) -> list[str]:
    return [n["params"]["uri"] for n in client.notifications if n["method"] == "notifications/resources/updated"]
