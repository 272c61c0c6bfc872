"""Measuring: one group is one engine process; telemetry beside it; every outcome becomes a row."""
