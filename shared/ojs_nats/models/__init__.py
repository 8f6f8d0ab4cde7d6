"""Answers of the server, as frozen structs by subject. Times are in UTC. Members that the server left out are None or
empty.

Members whose names end in `_ms` are milliseconds, those in `_at` are times.
"""
