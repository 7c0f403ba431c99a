"""What the bench sends: prompts of cases for decode, long texts for prefill. All of our own, all by seed."""
