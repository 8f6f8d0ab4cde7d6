"""What makes a process of a service: settings, start and stop, listening, health, and loops that services share."""
