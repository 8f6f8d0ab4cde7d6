"""Alerts and the Grafana dashboard, made from the metrics that there are."""
