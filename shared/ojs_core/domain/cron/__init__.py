"""Cron entries (ojs-cron): records, expressions, schedules and what is due. Pure, like `transitions`."""
