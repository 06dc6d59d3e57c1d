"""What happened, as pure projections of a conversation's events."""
