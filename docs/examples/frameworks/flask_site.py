"""Flask: `gunicorn -c flask_gunicorn.py flask_site:site`. Each process has its own connections."""

from __future__ import annotations

from flask import Flask, request
from jobs import app, send_welcome

site = Flask(__name__)
send_welcome.push_sync("import@example.org")  # with --preload in the process that forks the workers


@site.post("/members")
def join() -> tuple[dict[str, str], int]:
    return {"job": send_welcome.push_sync(request.args["email"]).id}, 202


@site.get("/jobs/<job_id>")
def job(job_id: str) -> dict[str, str]:
    found = app.sync.jobs.get(job_id)
    return {"type": found.type, "state": found.state}
