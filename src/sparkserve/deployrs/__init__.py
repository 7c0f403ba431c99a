"""What deploy-rs calls on a node, in our own words: docs/deploy-rs.md."""
