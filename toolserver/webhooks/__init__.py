"""Push delivery: subscriptions to premium endpoints, fired on a timer, signed, charged once for each delivery."""
