"""Questions to the projectors over NATS: what is asked, what is answered, and the asking side.

Whoever asks first writes a barrier record and names its sequence; the answer waits for it. So it contains everything that
any client was told before the question, through whichever gateway. Times are Unix milliseconds.
"""
