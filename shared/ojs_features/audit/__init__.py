"""The audit: who did what to the system, and who was refused (ojs-security §11)."""
