"""Parts of the API: their routes with schemas, and the calls and answers of their handlers."""
