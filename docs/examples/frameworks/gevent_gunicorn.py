"""Settings of gunicorn with gevent: `gunicorn -c gevent_gunicorn.py flask_site:site`."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()  # first of all: gunicorn would do so in its workers, behind the first push

from flask_gunicorn import child_exit, post_fork, preload_app, workers  # noqa: E402, F401

worker_class = "gevent"
control_socket_disable = True  # gunicorn's own loop, which greenlets can't have beside that of calls without `await`
