"""The way to NATS, of servers and clients alike: its address, the credentials, and a connection that reads them anew."""
