"""Maintenance: operators hold a whole system, and remove records that can't be read."""
