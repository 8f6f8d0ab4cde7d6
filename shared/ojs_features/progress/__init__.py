"""Progress of jobs: reported by workers, read once or followed (docs/progress.md)."""
