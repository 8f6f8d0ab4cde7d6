"""Django: `uvicorn django_site:asgi` or `gunicorn django_site:wsgi`. A job is pushed when its transaction commits."""

from __future__ import annotations

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.urls import path
from jobs import app, send_welcome

DATABASE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.sqlite"}
settings.configure(ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF=__name__, DATABASES={"default": DATABASE})


def join(request: HttpRequest) -> JsonResponse:
    email = request.GET["email"]
    pushed: list[str] = []
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("CREATE TABLE IF NOT EXISTS members (email TEXT UNIQUE)")
                cursor.execute("INSERT INTO members VALUES (%s)", [email])
            transaction.on_commit(lambda: pushed.append(send_welcome.push_sync(email).id))
            if "@" not in email:
                raise ValueError("that is no address")  # neither the row nor the job is there
    except ValueError as error:
        return JsonResponse({"error": str(error), "pushed": pushed}, status=400)
    return JsonResponse({"job": pushed[0]}, status=202)


async def job(_request: HttpRequest, job_id: str) -> JsonResponse:
    found = await app.client.jobs.get(job_id)  # under WSGI Django runs this in a loop of its own
    return JsonResponse({"type": found.type, "state": found.state})


urlpatterns = [path("members", join), path("jobs/<job_id>", job)]
asgi = get_asgi_application()
wsgi = get_wsgi_application()
