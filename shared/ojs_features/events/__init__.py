"""Events for clients: read page by page, followed as server-sent events, or over a WebSocket."""
