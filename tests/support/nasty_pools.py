"""Nasty values for every kind of argument: what has broken programs, and what is made to."""

# Empty objects have no type of their own.
# pyright: reportUnknownVariableType=false

import unicodedata
from typing import Any

from tests.support.hostile_tree import PLAIN

PATHS: tuple[str, ...] = (
    *PLAIN, "spec.md", "deep.md", "long-line.md", "empty.md", "bom.md", "utf16.md", "invalid.md",
    "nul.md", "images.md",
    "cjk/中文.md", "bad-front.md", "outward.md", "nfd-é.md", unicodedata.normalize("NFD", "nfc-é.md"), "hard.md",
    "out-link.md", "out-dir/secret.md", "out-dir/new.md", "out-picture.png", "in-link.md", "loop", "loop/x.md",
    "dangling.md", "self/a.md", "self/self/self/a.md", "pipe.md", "img/pipe.png", "folder.md", "folder.md/x.md",
    "../outside/secret.md", "sub/../../outside/secret.md", "%2e%2e/outside/secret.md", "..%2foutside%2fsecret.md",
    "%252e%252e/outside/secret.md", "sub/%2e/c.md", "..\\outside\\secret.md", "....//outside/secret.md",
    "/etc/passwd",
    "//etc/passwd", "~/x.md", "$HOME/x.md", "C:/x.md", "C:x.md", "\\\\host\\share\\x.md", "file:///etc/passwd",
    "http://127.0.0.1/x.md", ".", "..", "/", "", " ", "./a.md", "././a.md", "a.md/", "sub/", "sub//c.md", "sub", "a",
    "A.MD", "a.md\0", "a\0.md", "a\n.md", "\x7f.md", "a.md ", "a.md.", "CON.md", "nul", "aux/x.md", "a:b.md", "a?.md",
    "<x>.md", "a|b.md", '"a".md', "*.md", "x" * 254 + ".md", "x" * 5_000 + ".md", "y/" * 2_000 + "x.md",
    "é" * 130 + ".md", "y/" * 128 + "x.md", "\ufeffa.md", "\u202ea.md", "a\u2028.md", "👩‍👧.md", "\ufffe.md",
    ".git/config", ".GIT/config", "sub/.git/x.md", ".git.md", "a\ud800.md", "\udcff.md",
    ".local-vector-search-mcp/index.db", ".local-vector-search-mcp/x.md", ".lvs-tmp-x.md", ".hidden.md",
    ".hidden/x.md",
    "new/x.md", "new/y.md", "new/z.md", "sub/new.md", "node_modules/x.md", "img/p.png", "img/q.jpg", "img/r.webp",
    "img/s.gif", "img/liar.jpg", "img/cut.png", "img/text.png", "img/empty.png", "img/bomb.png", "img/thin.png",
    "img/new.png", "img/new.jpg", "img", "notes.txt", "page.html", "data.bin", "out.pdf", "a.pdf",
    "a.md::1", "a::b.md",
)  # fmt: skip

POINTERS: tuple[str, ...] = (
    "document", "frontmatter", "1", "1.1", "1.2", "p1", "1.p1", "1.p2", "1.li1", "1.li1.li1", "1.t1", "1.t2", "1.q1",
    "1.code1", "1.hr1", "1.math1", "1.html1", "1.ref1", "1.fn1", "0", "1.p0", "1.p01", "1.p1000000", "1.p1000001",
    "1" * 5_000, "1." * 2_000 + "p1", "1.p" + "9" * 400, "1.p1~", "1.p1~zz", "1.p1~0123456789abcdef",
    "1.p1~0123456789abcdef~0123456789abcdef", "1.p1~0123456789ABCDEF~", "~", "::", "a.md::", "::1", "a.md::1.p1",
    "a.md::b.md::1", "../outside/secret.md::document", "a.md::document~0123456789abcdef", "1.p1 ", " 1.p1", "1.p١",
    "li1" + ".li1" * 60, "1.x1", "1..p1", ".p1", "p1.p1", "Document", "", "null", "1.p1\n", "\0", "中", "-1", "1e3",
)  # fmt: skip

QUERIES: tuple[str, ...] = (
    "para", "text", "数据库", "检索", "a", "the", "of and the", "🎉", "👩‍👩‍👧", '"', '""', '"a', 'a"b"c', "-a",
    "--a", '-"a b"',
    "a OR b", "a AND NOT b", "NEAR(a b, 5)", "body:a", "a*", "*", "^a", "a^", "(", ")", "a)", "{a b}:c",
    "'; DROP TABLE", "%", "_", "\\", "\0", "a\0b", "\n", " ", "", "\u2028", "\u0301" * 500, "a" * 100_000,
    "word " * 20_000, "中" * 30_000, "-x " * 5_000, '"a b" ' * 3_000, "(" * 5_000, "kb_edit_table", "v1.2.3",
    "foo.bar", "--embedding-provider", "ﬁ", "ẞ", "ก" * 200, "\ud83c", "a\ud800", "x.y." * 5_000, "NOT", "AND",
    "OR NOT", "a:b:c", "title:", "İı", "ϓ", "\ufdfa" * 2_000, " ".join(f"w{n}" for n in range(10_000)),
)  # fmt: skip

GLOBS: tuple[str, ...] = (
    "**/*.md", "*.md", "**", "*", "", "/", "a.md", "sub/**", "{a,b}.md", "{a,{b,c}}.md", "{" * 500,
    "{a," * 60 + "}" * 60, "{a,b}" * 25, "{a,b,c,d,e,f,g,h}" * 6, "*" * 1_000, "**/" * 300 + "x", "*a" * 200 + "b",
    "?" * 300, "[a-z].md", "[", "[]", "[!]", "[z-a]", "[[:alpha:]]", "[" * 500, "\\", "a\\", "!a.md", "../**",
    "/etc/*", "../outside/*", "**/../**", "\0", "\n", "a" * 20_000, "(a+)+$", "[^/]*", "中*", "**a**", "***",
    "*/" * 400, "[a-\uffff]*", "{1..1000000}", "{,}" * 15, "a//b", "*" + "a*" * 40 + "/" + "*b" * 40,
    "**/" + "*o" * 30 + "/**", "[\\]]", "{a,b", "a,b}", "\ud800*",
)  # fmt: skip

REGEXES: tuple[str, ...] = (
    "(a+)+$", "(a|a)*b", "(a|aa)+$", "(.*)*x", "(.*.*)*y", r"(\w+\s?)*$", r"(x+x+)+y", r"(?:(?:a*)*)*b",
    "(", "[", "*",
    "a{1,100000}", "(a{1,1000}){1,1000}", r"\1", r"(?P<x>a)(?P=x)", "(?R)", "(?i)PARA", "^", "$", "", "^$", r"\b",
    "(?=x)", "(?<=a)b", "(?<=a+)b", ".", "(?s).*", r"[\s\S]+", "a|", "x*", "\\", "(?", "(?#", r"\p{L}", r"\p{Bad}",
    r"\N{x}", "text", "para", "a", r"\n", "\0", "(" * 3_000 + ")" * 3_000, "a?" * 500 + "a" * 500,
    "(?:" * 2_000 + "a" + ")" * 2_000, "[a-" * 100, "word", r"(word )+$", "(?e:abc){e<=30}", r"(?:word\s)*x",
    "(?b)(?:text){e}", r"(?<n>.)(?<n>.)", "((a*)*)*$", "(((((a{1,99}){1,99}){1,99}){1,99}){1,99})", "(?(1)a|b)",
    r"(?:word +)+(?:word +)+(?:word +)+z", "(?r)a", "(?|a|b)", r"\G", "(?0)", "(?&x)", "(?>a+)b",
)  # fmt: skip

REPLACEMENTS: tuple[str, ...] = (
    "x", "", "\\1", "\\9", "\\g<x>", "\\", "\\0", "# h", "\n\n", "```", "| a |", "---", "\0", "\u2028", "X" * 50_000,
    "\\g<", "$1", "<!--", "\\x", "\\777", "\\g<1>", "\\N{DIGIT ONE}",
)  # fmt: skip

MARKDOWN: tuple[str, ...] = (
    "text", "# H", "## H", "- item", "  - item", "1. one", "```\ncode\n```", "```\nopen", "> q",
    "| a | b |\n|--|--|\n| 1 | 2 |", "---", "***", "===", "<!-- c -->", "<!-- open", "<div>", "$$\nx\n$$", "$$\nopen",
    "[^1]: n", "[ref]: /u", "", "\n", "\n\n\n", " ", "\t", "\0", "\ufefftext", "a\r\nb", "a\rb", "a\u2028b",
    "# A\n\n## B\n\ntext", "text\n\n# H", "- a\n- b", "- - a", "    code", "---\ntitle: x\n---", "---\n- a\n---\n",
    "a\n---", "a | b\n--|--", ">" * 3_000 + "x", "- " * 500 + "x", "*" * 20_000, "[" * 20_000, "x" * 200_000,
    "| " * 5_000 + "\n" + "|-" * 5_000, "```" * 100, "\x0c", "# " + "x" * 10_000, "{{x}}", "[[a]] ![[b]] ^id %%c%%",
    "a" + "\ud800", "![](" * 5_000, "<a " * 5_000, "&#x0;&#xD800;&amp", "[a]: " + "(" * 5_000,
    "`" * 9_999 + "a" + "`" * 9_998,
)  # fmt: skip

FRONT_VALUES: tuple[Any, ...] = (
    "x", "", "a: b", "- x", "#", "'", '"', "\n", "a\nb", "---", "...", "null", "true", "yes", "1", "2026-01-01", "\0",
    "\u2028", "\x85", "\ufeff", "&a", "*a", "!t", "|", ">", "{", "[", "@x", "`", "%", "中", "🎉", " x ",
    "x" * 50_000, 0,
    -1, 1.5, 1e308, 10**30, True, [], {}, [[]], [{}], {"": ""}, {"a": {"b": [1, {"c": None}]}}, [None],
    ["a", 1, True, None, [], {}], "---\n", "a\n---\nb", {"<<": {"a": 1}}, {"a: b": "c # d"}, "\x1b[31m", "\x9f",
    list(range(9_000)), "0o17", "1_000", "0x1F", ".inf", "1:30", "~", "=", "<<", "\t", "a\tb", "\r", "a\r\nb", "? x",
)  # fmt: skip

WHERE: tuple[Any, ...] = (
    {}, {"status": "draft"}, {"n": 5}, {"n": {"$gt": 1}}, {"n": {"$gt": "1"}}, {"n": {"$in": [1, 5]}},
    {"n": {"$in": 5}},
    {"x": {"$exists": False}}, {"x": {"$exists": "yes"}}, {"x": {"$regex": ".*"}}, {"$or": [{}]}, {"$where": "1"},
    {"": 1}, {"a.b.c": 1}, {"." * 500: 1}, {"x": {"$eq": {"$eq": 1}}}, {"x": {}}, {"x": []}, {"x": None},
    {"x'\"--": "'; DROP"}, {"tags": {"$contains": "x"}}, {"date": {"$gte": "2026-01-01", "$lt": "x"}},
    {"x": {"$in": list(range(3_000))}}, {f"k{n}": n for n in range(1_500)}, {"x": {"$ne": 1, "$nin": [2], "$eq": 3}},
    {"x": 10**25}, {"x": 1e308}, {"x": "\0"}, {"\0": 1}, {"x": {"$gt": True}}, {"x": {"$contains": {}}},
    {"x": {"$ne": None}}, {"title": {"$ne": "\ud800"}}, {"x": {"$in": [[], {}, None]}}, {"n": -0.0}, {"n": 5.0},
)  # fmt: skip

CURSORS: tuple[str, ...] = (
    "", "x", "e30", "bnVsbA", "W10", "eyJhIjoxfQ", "!!!!", "A" * 50_000, "\0", "中", "==", "-_-_",
    "eyJrIjpbIngiLCJ5Il19",
    "WzEsMl0", "W1tbW1tbW10=",
)  # fmt: skip
DATES: tuple[str, ...] = (
    "2026-01-01", "2026-01-01T00:00:00Z", "2026-13-01", "0000-01-01", "9999-12-31T23:59:59-23:59",
    "now", "", "1", "-1",
    "2026-01-01T99:00", "0001-01-01T00:00:00+23:59", "20260101", "2026-W01-1", "٢٠٢٦-01-01",
)  # fmt: skip
HASHES = ("", "x", "0123456789abcdef", "0" * 64, "F" * 16, "\0", "中" * 16)
NAMES: tuple[str, ...] = (
    "status", "title", "tags", "aliases", "date", "n", "", ".", "a.b", "x'y", "\0", "k" * 5_000, "中",
    "a: b", "#c", "- d",
    "k", "v", "\n", "<<", "? x", "&a", "---", "\ud800", "a\rb", "\u2028",
)  # fmt: skip
URLS: tuple[str, ...] = (
    "http://127.0.0.1/x.png", "https://127.0.0.1/x.png", "https://localhost/x.png", "https://[::1]/x",
    "https://169.254.169.254/latest", "https://10.0.0.1/x", "https://0/x", "https://2130706433/", "https://0x7f.1/",
    "https://[::ffff:127.0.0.1]/", "file:///etc/passwd", "data:image/png;base64,AAAA", "https://user:pw@127.0.0.1/",
    "https://127.0.0.1:22/", "ftp://x/", "", "x", "https://", "https:///x", "https://\0/", "https://ex ample/",
    "https://xn--/", "https://" + "a" * 5_000 + "/", "https://name.invalid/x.png", "//x", "https://[",
    "https://中.invalid/", "https://[fe80::1%25lo]/", "https://127.1/\r\nX: y",
    "https://127.0.0.1:99999/", "HTTPS://0.0.0.0",
)  # fmt: skip
ANYTHING: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**64, 10**30, 1.5, 1e308, "", "x", "true", "1", "[]",
    "{}", "null", "[1",
    "NaN", [], {}, [[]], [None], {"": None}, {"a": {"b": {"c": []}}}, ["x"] * 300, "x" * 300_000,
    {"request": {}}, "\0",
    "undefined", "Infinity", [{"kind": "delete"}], -0.0, "1e999", '{"a":' * 150 + "1" + "}" * 150, "[" * 5_000,
)  # fmt: skip
ALIASES: tuple[str, ...] = (
    "content", "text", "file", "filePath", "limit", "sourcePath", "max_bytes", "page_size", "dry_run", "top_k",
    "__proto__", "self", "args", "x", "", "ctx", "request",
)  # fmt: skip
