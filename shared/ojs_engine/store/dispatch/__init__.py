"""From a fetch to claimed jobs: which queue, which token, the claim, and giving back."""
