"""Requests and answers: bytes to commands, and results to structs, which JSON and the API's description are made from.

A folder for each subject: `requests` reads what clients send, `answers` is what they get; larger ones have more modules.
What official clients read beside it is added in `dialects`. What is bounded is in `ojs_engine.base.payload_limits`.
"""
