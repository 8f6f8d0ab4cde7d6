"""The server's operations, a module for each subject: what `Client` has as `client.queues` and so on."""
