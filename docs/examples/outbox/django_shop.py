"""The same shop with Django, in one file: `python django_shop.py migrate`, `runserver`, and `relay` beside it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

import django
from django.conf import settings
from django.core.management import execute_from_command_line

settings.configure(
    SECRET_KEY=os.environ.get("SECRET_KEY", "for the example alone"),
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("DATABASE", "shop.sqlite")}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402  # which need the settings
from django.http import HttpRequest, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402
from django.views.decorators.http import require_POST  # noqa: E402
from jobs import app, send_receipt  # noqa: E402
from outbox import MOST, push, row  # noqa: E402

from ojs_nats import OjsError  # noqa: E402


class Order(models.Model):
    item = models.CharField(max_length=100)
    email = models.EmailField()

    class Meta:
        app_label = "shop"


class OutboxJob(models.Model):
    """Pushed by `relay`, which any number of processes may run."""

    id = models.CharField(primary_key=True, max_length=36)
    type = models.CharField(max_length=255)
    args = models.TextField()

    class Meta:
        app_label = "shop"


@csrf_exempt  # for curl
@require_POST
def order(request: HttpRequest) -> JsonResponse:
    sent = json.loads(request.body)
    try:
        with transaction.atomic():
            new = Order.objects.create(item=sent["item"], email=sent["email"])
            job = send_receipt.job(new.pk, new.email)
            OutboxJob.objects.create(**dict(zip(("id", "type", "args"), row(job), strict=True)))
            if new.item == "sold out":
                raise LookupError("sold out")  # the order and its job are both gone
    except LookupError as error:
        return JsonResponse({"error": str(error)}, status=409)
    return JsonResponse({"order": new.pk, "job": job.id}, status=201)


urlpatterns = [path("orders", order)]


def relay() -> None:
    """Push what is in the outbox, until this is stopped."""

    async def once(rows: list[Any]) -> list[str]:
        async with app:
            pushed, refused = await push(app, rows)
        for reason in refused:
            print(f"a job of the outbox was refused: {reason}", file=sys.stderr)
        return pushed

    while True:
        rows = list(OutboxJob.objects.order_by("id").values_list("id", "type", "args")[:MOST])
        try:
            pushed = asyncio.run(once(rows)) if rows else []
        except OjsError as reason:
            print(f"the outbox waits: {reason}", file=sys.stderr)
            pushed = []
        OutboxJob.objects.filter(id__in=pushed).delete()
        if not pushed:
            time.sleep(0.5)


def migrate() -> None:
    """An application has migrations for this."""
    with connection.schema_editor() as editor:
        for model in (Order, OutboxJob):
            editor.create_model(model)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["relay"]:
            relay()
        case ["migrate"]:
            migrate()
        case _:
            execute_from_command_line(sys.argv)
