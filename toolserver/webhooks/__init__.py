"""Push delivery: subscriptions to premium endpoints, fired on a timer, signed, and charged once per delivery."""
