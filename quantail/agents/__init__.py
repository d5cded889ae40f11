"""Acting: the policy π_β while training, and the trained agent that a user holds."""
