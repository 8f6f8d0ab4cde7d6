"""Encryption of arguments and results, so that the server can't read them: AES-256-GCM, as ojs-encryption has it."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ojs_nats._extras import extra
from ojs_nats._plain import encoded
from ojs_nats.app import App
from ojs_nats.chains import EnqueueNext, ExecutionNext
from ojs_nats.errors import OjsError
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._context import JobContext

_ENCODING: Final = "binary/encrypted"
_ENCODINGS: Final = "ojs.codec.encodings"
_KEY_ID: Final = "ojs.codec.key_id"
_VERSION: Final = b"\x01"
_NONCE_BYTES: Final = 12
_KEY_BYTES: Final = 32
_SHORTEST: Final = len(_VERSION) + _NONCE_BYTES + 16


class Undecodable(OjsError):
    """Arguments or a result that can't be decrypted: their key isn't known here, or they have been changed."""


class _Encoded(msgspec.Struct, omit_defaults=True):
    """`key_id` is that of a result, which is also read without the job's `meta`."""

    encoding: str
    data: str
    key_id: str | None = None


class Encryption:
    """A middleware that encrypts arguments and results. It needs the extra `encryption`.

    Pushes are encrypted with the key `current`, a job's result with the key of its arguments. Give workers a new key
    before anybody pushes with it, and keep an old one until no job has it any more. Types, queues, tags, `meta`,
    checkpoints, progress and errors aren't encrypted. Arguments that aren't encrypted are read as they are.

    Args:
        keys: Keys of 32 random bytes each, by their ids.
        current: The id of the key for new jobs.

    Raises:
        ValueError: A key hasn't 32 bytes, or `current` isn't among them.
        MissingDependencyError: The package cryptography isn't installed.

    Example:
        ```python
        Encryption({"2026-11": key}, current="2026-11").install(app)
        ```
    """

    def __init__(self, keys: Mapping[str, bytes], *, current: str) -> None:
        aes = extra("cryptography.hazmat.primitives.ciphers.aead", of="encryption", what="the middleware Encryption").AESGCM
        self._broken = extra("cryptography.exceptions", of="encryption", what="the middleware Encryption").InvalidTag
        for key_id, key in keys.items():
            if len(key) != _KEY_BYTES:
                raise ValueError(f"keys[{key_id!r}] has {len(key)} bytes, and not 32: make one with os.urandom(32)")
        if current not in keys:
            raise ValueError(f"current is {current!r}, and keys has only: {', '.join(keys) or 'nothing'}")
        self._keys = {key_id: aes(key) for key_id, key in keys.items()}
        self._current = current

    def install(self, app: App) -> None:
        """Add itself to an app, next to the server: the app's other middleware sees arguments and results in plain
        text.
        """
        app.enqueue.add(self.on_push, "Encryption")
        app.execution.prepend(self.on_run, "Encryption")
        app.codec = self

    async def on_push(self, new: JobRequest[Any], next: EnqueueNext) -> JobRequest[Any] | None:
        """Encrypt the arguments of a job that is pushed.

        Raises:
            ValueError: The job is to be unique by its arguments. Encrypted ones can't be compared.
        """
        unique = new.options.get("unique")
        if unique is not None and "args" in unique.keys:
            raise ValueError(f"{new.type} is unique by its args, which are encrypted: name what it is unique by in meta")
        data = self._sealed(encoded(list(new.args), "args"), self._current)
        said = {"ojs_encoded": True, "encoding": _ENCODING, "data": data}
        meta = {**new.options.get("meta", {}), _ENCODINGS: [_ENCODING], _KEY_ID: self._current}
        return await next(msgspec.structs.replace(new.with_options(meta=meta), args=(said,)))

    async def on_run(self, context: JobContext, next: ExecutionNext) -> object:
        """Decrypt the arguments of a job that runs, and encrypt its result.

        Raises:
            Undecodable: The arguments can't be decrypted.
        """
        job = context.job
        key_id = job.meta.get(_KEY_ID)
        said = _encoded(job.args[0]) if len(job.args) == 1 else None
        if said is not None:
            job = msgspec.structs.replace(job, args=self._opened(said, key_id))
        context.job = msgspec.structs.replace(
            job,
            parent_results=self._each_decoded(job.parent_results),
            parent_results_by_index=self._each_decoded(job.parent_results_by_index),
        )
        result = await next()
        if result is None or said is None:
            return result
        data = self._sealed(encoded(result, "the result"), key_id)  # whoever pushed it has that key, if not yet a newer one
        return {"ojs_encoded": True, "encoding": _ENCODING, "data": data, "key_id": key_id}

    def decoded(self, value: Any) -> Any:
        """Return a result, decrypted if it was encrypted.

        Raises:
            Undecodable: The result can't be decrypted.
        """
        said = _encoded(value)
        return value if said is None else self._opened(said, said.key_id)

    def _each_decoded(self, results: Any) -> Any:
        """Return the results of earlier steps, decrypted, those of groups and DAGs member by member."""
        if isinstance(results, list):
            return [self._each_decoded(result) for result in results]
        if isinstance(results, dict) and _encoded(results) is None:
            return {name: self._each_decoded(result) for name, result in results.items()}
        return self.decoded(results)

    def _sealed(self, text: bytes, key_id: Any) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        sealed: bytes = self._keys[key_id].encrypt(nonce, text, None)
        return base64.b64encode(_VERSION + nonce + sealed).decode()

    def _opened(self, said: _Encoded, key_id: Any) -> Any:
        if said.encoding != _ENCODING:
            raise Undecodable(f"the encoding is {said.encoding!r}, and only {_ENCODING} is known here")
        key = self._keys.get(key_id)
        if key is None:
            raise Undecodable(f"it is encrypted with the key {key_id!r}, and known here are only: {', '.join(self._keys)}")
        try:
            sealed = base64.b64decode(said.data, validate=True)
        except binascii.Error:
            raise Undecodable("the encrypted data isn't base64") from None
        if len(sealed) < _SHORTEST or sealed[:1] != _VERSION:
            raise Undecodable("the encrypted data isn't of version 1, which is AES-256-GCM")
        nonce, rest = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            return msgspec.json.decode(key.decrypt(nonce, rest, None))
        except self._broken:
            raise Undecodable(f"it isn't what was encrypted with the key {key_id!r}") from None


def _encoded(value: Any) -> _Encoded | None:
    if not isinstance(value, dict) or value.get("ojs_encoded") is not True:
        return None
    try:
        return msgspec.convert(value, _Encoded)
    except msgspec.ValidationError as error:
        raise Undecodable(f"the encrypted data can't be read: {error}") from None
