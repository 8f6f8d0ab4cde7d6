"""Records of queues and of fair pools, known by heart to every gateway."""
