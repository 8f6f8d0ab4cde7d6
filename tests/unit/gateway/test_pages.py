"""The dashboard's files as a gateway serves them (docs/dashboard.md)."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from ojs_dashboard import files
from ojs_gateway.pages import Pages
from support.dashboard import need_libraries
from unit.gateway.conftest import Start

ROOT = Path(__file__).parents[3]
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
MOST_BYTES = 70_000
"""Of everything, as a client that takes nothing but gzip gets it (docs/adr/018)."""
MOST_LINES = 6_000


@pytest.fixture(autouse=True)
def libraries() -> None:
    need_libraries()


def loaded() -> files.Dashboard:
    found = files.load()
    assert found is not None
    return found


@pytest.mark.parametrize("path", [page.replace("{name}", "mail").replace("{id}", "x") for page in files.PAGES])
async def test_a_browser_gets_the_page_at_each_of_its_addresses(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path, headers=HTML) as answer:
        text = await answer.text()
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy
    for asset in re.findall(r'(?:href|src)="(/ui/[^"]+)"', text):
        async with http.get(asset) as found:
            assert found.status == 200, asset
            assert "immutable" in found.headers["Cache-Control"]


@pytest.mark.parametrize("path", ["/jobs/%E0%A4%A", "/queues/%FF", "/jobs/%"])
async def test_an_address_that_is_no_text_is_a_page_all_the_same(http: aiohttp.ClientSession, path: str) -> None:
    base = http._base_url
    assert base is not None
    async with http.get(URL(f"{base.origin()}{path}", encoded=True), headers=HTML) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")


async def test_the_files_of_the_dashboard_go_to_pages_of_every_origin(http: aiohttp.ClientSession) -> None:
    """Browsers send `Origin` with modules. What it is compared with may have been changed by a proxy."""
    sent = {"Origin": "https://jobs.example.com"}
    async with http.get("/", headers=HTML | sent) as answer:
        text = await answer.text()
        assert answer.status == 200
    for asset in re.findall(r'(?:href|src)="(/ui/[^"]+)"', text):
        async with http.get(asset, headers=sent) as found:
            assert found.status == 200, asset
    for path in ("/ojs/v1/jobs", "/ojs/manifest", "/healthz", "/metrics", "/nowhere"):
        async with http.get(path, headers=sent) as refused:
            assert refused.status == 403, path
            hint = (await refused.json(content_type=None))["error"]["hint"]
            assert "--allowed-origins https://jobs.example.com" in hint
            assert "--trusted-proxies" in hint


async def test_a_client_that_is_no_browser_gets_the_error_of_the_api(http: aiohttp.ClientSession) -> None:
    async with http.get("/", headers={"Accept": "application/json"}) as answer:
        assert answer.status == 404
        assert (await answer.json())["error"]["code"] == "not_found"


@pytest.mark.parametrize("path", ["/ui/0/app.js", "/ui/x/parts.js", "/ui/x/../../files.py", "/ui/x/%2e%2e%2ffiles.py"])
async def test_a_file_that_is_not_there_is_an_error(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path, headers=HTML) as answer:
        assert answer.status == 404


async def test_there_is_no_page_where_a_setting_says_so(start: Start) -> None:
    http = await start(dashboard=False)
    async with http.get("/", headers=HTML) as answer:
        assert answer.status == 404


async def test_files_come_compressed_to_those_who_take_them_so(http: aiohttp.ClientSession) -> None:
    total = 0
    for name in loaded().files:
        async with http.get(f"/ui/{name}", headers={"Accept-Encoding": "gzip"}, auto_decompress=False) as packed:
            assert packed.headers["Content-Encoding"] == "gzip"
            assert packed.headers.getall("Vary") == ["Accept-Encoding"]
            sent = await packed.read()
        async with http.get(f"/ui/{name}", headers={"Accept-Encoding": "identity"}) as plain:
            assert "Content-Encoding" not in plain.headers
            assert await plain.read() == gzip.decompress(sent)
        total += len(sent)
    async with http.get("/", headers=HTML | {"Accept-Encoding": "gzip"}, auto_decompress=False) as document:
        total += len(await document.read())
    assert total <= MOST_BYTES


def test_without_its_libraries_there_is_no_dashboard(tmp_path: Path) -> None:
    assert files.load(libraries=tmp_path) is None
    assert files.missing(tmp_path) == list(files.NEEDED)
    assert not Pages(libraries=tmp_path).there


def test_all_of_it_is_short() -> None:
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in files.FOLDER.rglob("*.*")}
    assert sum(lines.values()) <= MOST_LINES, lines


def test_modules_ask_no_other_host_and_run_no_text_as_code() -> None:
    for name, file in loaded().files.items():
        text = file.body.decode()
        assert not re.search(r"\b(?:eval|Function)\(|innerHTML|insertAdjacentHTML|unsafeHTML", text) or "lit-html" in name, name
        if not name.endswith((".svg", "lit-html.js", "signals-core.js")):
            assert "://" not in text, name


def test_each_button_says_what_it_is_and_only_forms_that_ask_are_submitted() -> None:
    """A button without a type submits its form, so that *Copy* or Enter would do what the form is about."""
    submits = set()
    for path in files.FOLDER.rglob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r'<button(?! type="(?:button|submit)")[^>]*', text) == [], path
        assert not re.search(r"\b(?:prompt|confirm|alert)\(", text), path
        submits |= {(path.name, name) for name in re.findall(r'<button type="submit"[^>]*>([^<]*)<', text)}
    assert submits == {("app.js", "Sign in"), ("parts.js", "Filter"), ("events.js", "Follow"), ("system.js", "Filter")}


def test_what_is_imported_keeps_its_name_since_modules_are_joined_by_names() -> None:
    for path in files.FOLDER.rglob("*.js"):
        assert not re.search(r"^import \{[^}]*\bas\b", path.read_text(encoding="utf-8"), re.MULTILINE), path


def test_all_addresses_are_made_in_one_place() -> None:
    written = re.compile(r"""href=["'/]|href=\$\{[`'"]/|\bgo\([`'"]|location\.(?:href|assign|replace)""")
    for path in files.FOLDER.rglob("*.js"):
        assert path.name == "router.js" or not written.search(path.read_text(encoding="utf-8").replace('href="#', "")), path


def test_all_modules_are_sent_without_their_documentation_comments_and_nothing_else_is_left_out() -> None:
    [sent] = (file.body.decode() for name, file in loaded().files.items() if name.endswith("/app.js"))
    assert "/**" not in sent
    packed = re.sub(r"\s", "", sent)
    for path in files.FOLDER.rglob("*.js"):
        text = re.sub(r"/\*\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"^import .*?;\n", "", text, flags=re.DOTALL | re.MULTILINE)
        assert re.sub(r"\s", "", re.sub(r"^export ", "", text, flags=re.MULTILINE)) in packed, path


def test_modules_are_sent_as_one_in_the_order_in_which_they_need_each_other(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    written = {
        "app.js": "import * as page from './pages/one.js';\nimport {\n\ttwice,\n} from './math.js';\n"
        "console.log(page.name, twice(2));\n",
        "math.js": "export const twice = (it) => 2 * it;\n",
        "pages/one.js": "import { signal } from '../signals-core.js';\nimport { twice } from '../math.js';\n"
        "export const name = signal(twice(1));\n",
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    dashboard = files.load(folder=tmp_path)
    assert dashboard is not None
    [sent] = (file.body.decode() for name, file in dashboard.files.items() if name.endswith("/app.js"))
    assert sent.splitlines() == [
        "import * as $signals_core from './signals-core.js';",
        "const $math = (() => {",
        "const twice = (it) => 2 * it;",
        "return { twice };",
        "})();",
        "const $pages_one = (() => {",
        "const { signal } = $signals_core;",
        "const { twice } = $math;",
        "const name = signal(twice(1));",
        "return { name };",
        "})();",
        "const page = $pages_one;",
        "const {",
        "\ttwice,",
        "} = $math;",
        "console.log(page.name, twice(2));",
    ]


def test_what_the_dashboard_knows_of_the_api_is_what_the_api_says() -> None:
    command = [sys.executable, str(ROOT / "script" / "dashboard_types.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "run script/dashboard_types.py"


def test_the_pages_of_the_server_are_those_of_the_browser() -> None:
    router = (files.FOLDER / "router.js").read_text(encoding="utf-8")
    there = re.findall(r"\['(/[^']*)', '(\w+)'\]", router)
    assert [re.sub(r":(\w+)", r"{\1}", path) for path, _ in there] == list(files.PAGES)
    assert {page for _, page in there} <= {path.stem for path in (files.FOLDER / "pages").glob("*.js")}
