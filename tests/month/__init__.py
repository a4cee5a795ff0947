"""An operator's month on the demo, as docs/operators-month.md tells it."""
