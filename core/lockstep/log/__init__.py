"""What is stored: events, their canonical form, packing, chain and store."""
