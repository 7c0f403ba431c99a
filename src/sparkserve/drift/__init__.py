"""What is different: between two closures (`diff`), and on nodes from what their closure says (`verify`)."""
