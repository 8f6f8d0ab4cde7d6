"""Crons: the server pushes a job whenever its schedule says so."""
