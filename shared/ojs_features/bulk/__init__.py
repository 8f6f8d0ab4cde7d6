"""Many jobs in one request (ojs-bulk-operations)."""
