"""Records of queues, known by heart to every gateway."""
