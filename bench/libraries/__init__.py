"""Job libraries side by side: `python -m bench.libraries`."""
