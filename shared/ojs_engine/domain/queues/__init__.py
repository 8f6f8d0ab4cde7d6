"""Queues as pure functions and structs: configuration in layers, the record, what a push must heed."""
