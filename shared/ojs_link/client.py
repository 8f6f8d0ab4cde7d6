"""nats-py's client, for which credentials are files: it reads them each time that it connects, so they may be replaced."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error as NatsError

from ojs_link.address import Address
from ojs_link.login import LoginProblem, read_login

USED: Final = (
    "_attempt_reconnect",
    "_connect_command",
    "_current_server",
    "_process_connect_init",
    "_process_err",
    "_process_op_err",
    "_public_nkey",
    "_reconnection_task",
    "_select_next_server",
    "_server_info",
    "_signature_cb",
    "_transport",
    "_user_jwt_cb",
)
"""Private names of nats-py's client that are used here and by the Python client. Releases since 2.10 have them."""
_REFUSALS: Final = ("authorization violation", "authentication expired", "authentication revoked")


class LinkClient(Client):
    """A connection that stays alive where nats-py would give up: after a login that changed, and any other complaint."""

    def __init__(self, used: Sequence[str] = USED) -> None:
        """`used` are the names that nats-py's client has to have. Raises ImportError for a release without one of them."""
        super().__init__()
        if missing := [name for name in used if not (name in vars(self) or hasattr(Client, name))]:
            named = ", ".join(missing)
            raise ImportError(f"this nats-py has no {named}, which ojs-nats uses: pip install 'nats-py<2.17'")
        self._address = Address(servers=())

    async def open(self, address: Address, **options: Any) -> None:
        """Connect, as `connect` does."""
        self._address = address
        await self.connect(list(address.servers), inbox_prefix=address.inbox_prefix, **options)

    @property
    def ssl_context(self) -> ssl.SSLContext:
        address = self._address
        try:
            context = ssl.create_default_context(cafile=address.ca or None)
            if address.cert:
                context.load_cert_chain(address.cert, address.key, password=_no_password)
        except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
            named = ", ".join(path for path in (address.ca, address.cert, address.key) if path)
            raise LoginProblem(f"the TLS files {named} can't be used: {error}") from None
        return context

    def _connect_command(self) -> bytes:
        address = self._address
        if address.wants_tls and not self._is_encrypted():
            raise LoginProblem("nats-server offers no TLS, and the address asks for it: configure TLS there, or ask for none")
        if address.creds:
            login = read_login(address.creds)
            self.options |= {"user": login.user, "password": login.password, "token": login.token}
            self._signature_cb, self._public_nkey = login.sign, login.public_key
            self._user_jwt_cb = None if login.jwt is None else bytearray(login.jwt.encode()).copy
        return super()._connect_command()

    def _is_encrypted(self) -> bool:
        server = self._current_server
        return bool(self._server_info.get("tls_required")) or (server is not None and server.uri.scheme == "wss")

    async def leave(self, reason: str) -> None:
        """Connect to another server, or anew to the only one there is, because of this reason."""
        await self._process_op_err(NatsError(f"nats: {reason}"))

    async def _process_err(self, err_msg: str) -> None:
        """Connect anew: nats-py closes for ever on most errors (a payload too large, a login that changed)."""
        if "permissions violation" in err_msg.lower():
            await super()._process_err(err_msg)
        else:
            await self.leave(err_msg)


def is_refused(error: BaseException) -> bool:
    """Whether NATS, or a file of credentials, says that this login won't do: another try alone won't mend that."""
    return isinstance(error, LoginProblem) or any(refusal in str(error).lower() for refusal in _REFUSALS)


def _no_password() -> str:
    raise ValueError("the key is encrypted; keep it unencrypted, in a file that only this user may read")
