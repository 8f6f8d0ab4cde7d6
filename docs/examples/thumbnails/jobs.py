"""Thumbnails of uploaded pictures: one job for each size, one that ends the upload, and a clean-up each night."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

from PIL import Image

from ojs_nats import App, JobContext, Retry, chain, group
from ojs_nats.worker import Discard

app = App()
FOLDER = Path(os.environ.get("UPLOADS", "uploads"))
SIZES = (64, 256, 1024)
KEPT_S = 24 * 3_600.0


def thumbnails(upload: str) -> Any:
    """The workflow of an upload: look at it, make all sizes at once, then say that it is ready."""
    return chain(inspect.job(upload), group(*(shrink.job(upload, size) for size in SIZES)), publish.job(upload))


@app.job("thumbnails.inspect", queue="thumbnails", retry=Retry(3))
def inspect(upload: str) -> dict[str, Any]:
    try:
        with Image.open(FOLDER / upload / "original") as picture:
            picture.verify()
            return {"format": picture.format, "width": picture.width, "height": picture.height}
    except (OSError, SyntaxError) as error:
        raise Discard(f"{upload} is no picture: {error}") from error  # which no further attempt would change


@app.job("thumbnails.shrink", queue="thumbnails", retry=Retry(3), timeout="1m", runs_in="process")
def shrink(ctx: JobContext, upload: str, size: int) -> str:
    """Computes, so it runs in a process of its own. To do it twice does no harm: it is written beside, then put in place."""
    ctx.progress_sync(0.1, f"{size} pixels")
    target = FOLDER / upload / f"{size}.png"
    with Image.open(FOLDER / upload / "original") as picture:
        picture.thumbnail((size, size))
        picture.save(target.with_suffix(".part"), "PNG")
    target.with_suffix(".part").replace(target)
    ctx.progress_sync(1.0)
    return target.name


@app.job("thumbnails.publish", queue="thumbnails", retry=Retry(5))
def publish(ctx: JobContext, upload: str) -> list[str]:
    """Is given what the jobs before it returned."""
    made: list[str] = sorted(path.name for path in (FOLDER / upload).glob("*.png"))
    ctx.log.info("an upload is ready", upload=upload, thumbnails=len(made))
    return made


@app.job("thumbnails.clean_up", queue="thumbnails", retry=Retry(3))
def clean_up(ctx: JobContext, older_than_s: float = KEPT_S) -> int:
    """Removes uploads by their age; how many. Looks whether it is to stop: a deployment needn't wait for it."""
    removed = 0
    for folder in sorted(FOLDER.iterdir()):
        if ctx.stopping:
            break
        if time.time() - folder.stat().st_mtime > older_than_s:
            shutil.rmtree(folder)
            removed += 1
    return removed
