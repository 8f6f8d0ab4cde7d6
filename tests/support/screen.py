"""The dashboard in a real browser, as somebody who looks and clicks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from support.browser import Browser, Page
from support.waiting import eventually

AXE: Final = Path(__file__).parents[2] / "services/ojs_dashboard/node_modules/axe-core/axe.min.js"
"""axe-core, which `script/setup dev` brings."""
_PATIENCE_S: Final = 60.0
_ESCAPED: Final = r"""(() => {
    const whole = document.documentElement.outerHTML;
    return {
        elements: document.body.querySelectorAll('img, script, iframe, object, [onerror], [style]').length,
        marks: whole.match(/.{0,40}[\u0007\u001b\u202a-\u202e\u2066-\u2069].{0,20}/)?.[0] ?? '',
        long: whole.length > 400_000,
        wide: document.documentElement.scrollWidth > innerWidth,
    };
})()"""
_FIND: Final = """
const named = (node) => (node.getAttribute('aria-label') ?? node.innerText ?? '').trim();
const within = (row) => [...document.querySelectorAll('tr')].find((node) => node.innerText.includes(row));
const scope = (row) => (row ? within(row) : ([...document.querySelectorAll('dialog[open]')].at(-1) ?? document));
const all = (row, kinds) => [...(scope(row)?.querySelectorAll(kinds) ?? [])];
"""


_KEYS: Final[dict[str, dict[str, object]]] = {
    "Enter": {"code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Escape": {"code": "Escape", "windowsVirtualKeyCode": 27},
}
"""What a browser has to be given so that it does by itself what it does for a person's key."""


class Screen:
    """One tab with the dashboard of a gateway."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self._url = url

    @classmethod
    async def opened(cls, browser: Browser, url: str, *, dark: bool = False, width: int = 1280, height: int = 900) -> Screen:
        """A tab that notes what goes wrong in it; nobody is signed in."""
        page = await browser.page()
        screen = cls(page, url)
        await page.command("Page.enable", {})
        await page.note()
        await page.command("Network.clearBrowserCookies", {})
        # Of the tabs of a window one is seen, and pages that nobody looks at ask nothing.
        await page.command("Emulation.setFocusEmulationEnabled", {"enabled": True})
        await screen.looked_at(dark=dark, width=width, height=height)
        return screen

    async def looked_at(self, *, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        """Have the page seen in the light or the dark, and in a window of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.page.command("Emulation.setDeviceMetricsOverride", size)
        scheme = "dark" if dark else "light"
        await self.page.command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        script = f"innerWidth === {width} && matchMedia('(prefers-color-scheme: {scheme})').matches"
        await self._until(script, f"the page is {width} pixels wide and {scheme}")

    async def hide(self) -> None:
        """Have the tab be one that isn't seen; `in_front` shows it again."""
        await self.page.command("Emulation.setFocusEmulationEnabled", {"enabled": False})

    async def in_front(self) -> None:
        """Show the tab before the others of its window."""
        await self.page.command("Page.bringToFront", {})
        await self._until("!document.hidden", "the tab is seen")

    async def close(self) -> None:
        """Close the tab, and with it its streams."""
        await self.page.command("Page.close", {})

    async def leave(self) -> None:
        """Go elsewhere, so that a server that ends isn't asked any more."""
        await self.page.go("about:blank")

    async def rest(self) -> None:
        """Show a page that asks nothing, in the same document, and forget what the test has kept in the browser."""
        await self.page.run("""(() => {
            if (location.origin === 'null') return; // of an empty page
            localStorage.clear();
            history.pushState(null, '', '/nowhere');
            dispatchEvent(new PopStateEvent('popstate'));
        })()""")

    async def anew(self, **looks: Any) -> None:
        """Make it a tab again in which nothing went wrong and nobody is signed in."""
        self.page.noted.clear()
        await self.page.command("Network.clearBrowserCookies", {})
        await self.looked_at(**looks)

    async def go(self, path: str) -> None:
        """Load a page of the dashboard; returns when what it reads is there."""
        await self.page.go(self._url + path)
        await self.settled()

    async def follow(self, path: str) -> None:
        """Go to a page of the dashboard as by a link, without loading the document again; an empty tab loads it."""
        if self._url != await self.page.run("location.origin"):
            await self.go(path)
            return
        await self.page.run(f"""(() => {{
            const link = document.body.appendChild(Object.assign(document.createElement('a'), {{ href: {json.dumps(path)} }}));
            link.click();
            link.remove();
        }})()""")
        await self.settled()

    async def settled(self) -> None:
        """Return when nothing is being loaded for the first time."""
        script = "!!document.querySelector('main h1') && !document.querySelector('.skeleton')"
        await self._until(script, "the page has come")

    async def titled(self, title: str) -> None:
        """Return when the page of this title is open."""
        await self._until(f"document.querySelector('main h1')?.innerText === {json.dumps(title)}", f"the page is {title!r}")

    async def text(self) -> str:
        """What can be read."""
        return str(await self.page.run("document.body.innerText"))

    async def shows(self, *texts: str) -> None:
        """Return when all of these texts can be read."""
        for text in texts:
            await self._until(f"document.body.innerText.includes({json.dumps(text)})", f"{text!r} is shown")

    async def hides(self, text: str) -> None:
        """Return when a text can't be read any more."""
        await self._until(f"!document.body.innerText.includes({json.dumps(text)})", f"{text!r} is gone")

    async def click(self, name: str, *, row: str = "") -> None:
        """Press the button, or follow the link, of this name: in the dialog if one is open, or in the row that has a text."""
        script = f"""(() => {{ {_FIND}
            const found = all({json.dumps(row)}, 'button, a, input[type=checkbox], summary')
                .find((node) => named(node) === {json.dumps(name)} && !node.disabled);
            found?.click();
            return !!found;
        }})()"""
        await self._until(script, f"there is {name!r} to be pressed {row and f'in {row!r}'}")

    async def offered(self, *, row: str = "") -> set[str]:
        """The names of the buttons that can be pressed."""
        script = f"(() => {{ {_FIND} return all({json.dumps(row)}, 'button:not([disabled])').map(named); }})()"
        return set(await self.page.run(script))

    async def offers(self, name: str) -> bool:
        """Whether there is a button of this name."""
        return name in await self.offered()

    async def links(self) -> set[str]:
        """The names of the links."""
        return set(await self.page.run(f"(() => {{ {_FIND} return all('', 'a').map(named); }})()"))

    async def secret(self, pattern: str) -> str:
        """Read what is shown this once, and close its dialog."""
        found: str = await self.kept_secret(pattern)
        await self.click("Close")
        await self.closes()
        return found

    async def kept_secret(self, pattern: str) -> str:
        """Read what is shown this once."""
        field = "document.querySelector('dialog[open] #secret')"
        script = f"({field}?.value.match(new RegExp({json.dumps(pattern)}))?.[0] ?? '')"
        await self._until(script, f"{pattern} is shown")
        return str(await self.page.run(script))

    async def closes(self) -> None:
        """Return when no dialog is open."""
        await self._until("!document.querySelector('dialog[open]')", "the dialog is closed")

    async def finds(self, pattern: str) -> str:
        """Return what can be read that fits a regular expression of JavaScript."""
        script = f"(document.body.innerText.match(new RegExp({json.dumps(pattern)}))?.[0] ?? '')"
        await self._until(script, f"{pattern} is shown")
        return str(await self.page.run(script))

    async def commands(self, where: str = "main > header") -> list[str]:
        """The lines that are copied for `ojs-nats` in a part of the page."""
        script = f"""[...document.querySelectorAll({json.dumps(where)} + " .commands button")]
            .filter((button) => button.innerText === 'ojs-nats').map((button) => button.title)"""
        found: list[str] = await self.page.run(script)
        return found

    async def fill(self, label: str, value: str) -> None:
        """Type into the field of this label."""
        script = f"""(() => {{
            const label = [...document.querySelectorAll('label')].find((node) => node.innerText.trim() === {json.dumps(label)});
            const field = label ? (label.control ?? document.getElementById(label.htmlFor))
                : document.querySelector(`[aria-label=${{JSON.stringify({json.dumps(label)})}}]`);
            if (!field) return false;
            field.value = {json.dumps(value)};
            field.dispatchEvent(new Event('input', {{bubbles: true}}));
            field.dispatchEvent(new Event('change', {{bubbles: true}}));
            return true;
        }})()"""
        await self._until(script, f"there is a field {label!r}")

    async def press(self, key: str) -> None:
        """Press a key where the focus is."""
        typed = {"text": key} if len(key) == 1 else _KEYS.get(key, {})
        await self.page.command("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **typed})
        await self.page.command("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def troubles(self, *known: str) -> list[str]:
        """What the browser has complained of, but for what has one of these texts."""
        return [one for one in self.page.noted if not any(text in one for text in known)]

    async def barriers(self) -> list[str]:
        """What axe finds against WCAG 2.2 AA."""
        if not await self.page.run("'axe' in globalThis"):  # which the engine has made quick by the second page of a document
            await self.page.run(AXE.read_text(encoding="utf-8") + "; true")
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        # What fits isn't described, and style sheets aren't fetched again.
        only = "resultTypes: ['violations'], selectors: false, preload: false"
        script = f"""axe.run(document, {{runOnly: {json.dumps(tags)}, {only}}}).then((result) => result.violations
            .map((one) => `${{one.id}}: ${{one.help}}: ${{one.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}}`))"""
        found: list[str] = await self.page.run(script)
        return found

    async def escaped(self) -> dict[str, object]:
        """What text from outside has become besides text of the length and width that the page gives it; empty for nothing."""
        found: dict[str, object] = await self.page.run(_ESCAPED)
        return {what: done for what, done in found.items() if done}

    async def until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        """Return when a condition holds; what is seen is in the failure."""
        try:
            await eventually(condition, _PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"not met: {what}\n{await self.text()}\n{self.page.noted}") from error

    async def _until(self, script: str, what: str) -> None:
        async def met() -> bool:
            return bool(await self.page.run(script))

        await self.until(met, what)
