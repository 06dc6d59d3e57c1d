"""What happens next: a pure state machine over events. No I/O, no clock, no randomness."""
