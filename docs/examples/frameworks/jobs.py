"""The jobs of these sites. `ojs-nats worker jobs` runs them."""

from __future__ import annotations

from ojs_nats import App

app = App()  # OJS_URL, else http://127.0.0.1:8080


@app.job("welcome.send", queue="mail")
async def send_welcome(to: str) -> str:
    return f"sent to {to}"
