"""Schemas of jobs' arguments (docs/schemas.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import schemas as contract
from ojs_engine.api.contract import part_of
from ojs_features.schemas.dialects import SHAPES
from ojs_features.schemas.handlers import SchemaHandlers

PART: Final = part_of(
    contract.SCHEMAS,
    (
        SchemaHandlers,
        {
            contract.LIST: SchemaHandlers.list,
            contract.REGISTER: SchemaHandlers.register,
            contract.GET: SchemaHandlers.read,
            contract.DELETE: SchemaHandlers.delete,
            contract.VERSIONS: SchemaHandlers.versions,
            contract.GET_VERSION: SchemaHandlers.read_version,
            contract.DELETE_VERSION: SchemaHandlers.delete_version,
            contract.LIST_WHOLE: SchemaHandlers.admin_list,
            contract.GET_WHOLE: SchemaHandlers.admin_read,
            contract.GET_WHOLE_VERSION: SchemaHandlers.admin_read_version,
            contract.PUT_VERSION: SchemaHandlers.put,
        },
    ),
    shapes=SHAPES,
)
