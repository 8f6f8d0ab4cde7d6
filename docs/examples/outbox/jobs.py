"""What both shops have done in the background: `ojs-nats worker jobs`."""

from __future__ import annotations

from ojs_nats import App, JobContext, Retry

app = App()


@app.job("shop.receipt", queue="shop", retry=Retry(5), timeout="30s")
async def send_receipt(ctx: JobContext, order: int, to: str) -> str:
    ctx.log.info("a receipt is sent", order=order)
    return f"receipt of order {order} to {to}"
