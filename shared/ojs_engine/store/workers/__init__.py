"""Who is there: services and workers, and what operators told them."""
