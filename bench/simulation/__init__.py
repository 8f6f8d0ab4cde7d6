"""A model of larger systems than were ever measured, from what was measured of small ones."""
