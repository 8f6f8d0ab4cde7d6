"""`ojs-nats doctor`: what is wrong with a server, what that means, and how it is mended."""
