"""Cron entries, as clients write and read them."""
