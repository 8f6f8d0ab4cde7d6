"""`ojs-nats setup`: makes the streams, for services whose users may not."""

from __future__ import annotations

from ojs_core.jetstream.connection import CannotConnect, Connection
from ojs_core.jetstream.grants import OPERATOR
from ojs_core.jetstream.streams import check_server, no_way_to_nats, provision
from ojs_core.runtime.settings import Settings


async def set_up(settings: Settings) -> int:
    """Make or check the streams once; returns the exit code. Raises StartupProblem."""
    nats = Connection(f"{settings.namespace}-{OPERATOR}")
    url = settings.nats_of(OPERATOR)
    try:
        await nats.connect(url)
        check_server(nats)
        config = await provision(nats, settings.streams)
    except CannotConnect as error:
        raise no_way_to_nats(url, error) from None
    finally:
        await nats.close()
    names = ", ".join(stream["name"] for stream in config.streams())
    print(f"the streams are as they must be: {names}")
    return 0
