"""Measures a running Open Job Spec server over HTTP: `python -m bench --help`. Not part of the distribution."""
