"""Who is answered over NATS, by `--nats-api` and by the key of the request."""

from __future__ import annotations

import nats.errors
import pytest

from integration.gateway.conftest import Asker, Serve

TOKEN = "a-key-for-everything-of-this-gateway-alone"
HEADERS = {"none": {}, "wrong": {"Authorization": f"Bearer {TOKEN}x"}, "right": {"Authorization": f"Bearer {TOKEN}"}}
WITH_KEYS = {
    "auto": {"none": 401, "wrong": 401, "right": 200},
    "keys": {"none": 401, "wrong": 401, "right": 200},
    "open": {"none": 200, "wrong": 401, "right": 200},
}
WITHOUT_KEYS = {"auto": {"none": 200}, "keys": {"none": 401, "wrong": 401}, "open": {"none": 200}}
CASES = [
    (table, mode, shown)
    for table in ("keys", "no keys")
    for mode, outcomes in (WITH_KEYS if table == "keys" else WITHOUT_KEYS).items()
    for shown in outcomes
]


@pytest.mark.parametrize(("keys", "mode", "shown"), CASES)
async def test_a_request_over_nats_is_answered_by_the_setting_and_its_key(
    serve: Serve, ask: Asker, keys: str, mode: str, shown: str
) -> None:
    await serve(nats_api=mode, api_key=TOKEN if keys == "keys" else None)
    expected = (WITH_KEYS if keys == "keys" else WITHOUT_KEYS)[mode][shown]
    answer = await ask("getMaintenance._", None, None, **HEADERS[shown])
    assert answer.status == expected, answer
    if expected == 401:
        assert (answer.body["error"]["code"], answer.headers["WWW-Authenticate"]) == ("unauthenticated", "Bearer")
        assert answer.headers["Nats-Service-Error-Code"] == "401"
        assert TOKEN not in str(answer)
    assert (await ask("getManifest._", None, None, **HEADERS[shown])).status == 200


@pytest.mark.parametrize("shown", HEADERS)
async def test_where_it_is_off_nobody_is_answered_whatever_he_shows(serve: Serve, ask: Asker, shown: str) -> None:
    await serve(nats_api="off", api_key=TOKEN)
    with pytest.raises(nats.errors.NoRespondersError):
        await ask("getMaintenance._", None, None, **HEADERS[shown])
