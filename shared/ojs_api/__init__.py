"""The contract: what crosses a wire, one module for each subject, without input or output (docs/adr/147).

A subject's module has the structs of its requests and answers, and its operations. The server's routes, checks and
description, and the client's requests and answers follow from them.
"""
