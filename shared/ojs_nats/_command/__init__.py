"""The command `ojs-nats`: it runs workers itself, and all else by the server's package where that is installed."""
