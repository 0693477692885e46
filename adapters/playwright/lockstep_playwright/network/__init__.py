"""What the pages, frames and workers of a browser ask of the network, held before it leaves, and what comes of it."""
