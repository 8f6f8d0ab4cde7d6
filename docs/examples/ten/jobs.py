"""The jobs of the ten programs. `ojs-nats worker jobs` runs them."""

from __future__ import annotations

import asyncio

from ojs_nats import App, JobContext, Retry, Unique

app = App()


@app.job("math.add")
def add(first: int, second: int) -> int:
    return first + second


@app.job("math.total")
def total(ctx: JobContext) -> int:
    [parts] = ctx.parent_results  # those of the group before it
    return sum(parts)


@app.job("mail.send", queue="mail", retry=Retry(3, initial_interval="200ms", jitter=False))
async def send(ctx: JobContext, to: str) -> str:
    if ctx.attempt < 3:
        raise ConnectionError("the mail server is busy")
    return f"sent to {to} at attempt {ctx.attempt}"


@app.job("report.build", unique=Unique(keys=["type", "args"], period="1h", on_conflict="ignore"))
async def build_report(month: str) -> str:
    return f"the report of {month}"


@app.job("video.encode")
async def encode(ctx: JobContext, name: str) -> str:
    for step in range(1, 4):
        await asyncio.sleep(1.1)  # the server keeps one report a second
        await ctx.progress(step / 4, f"step {step} of 4")
    return f"{name}.webm"
