"""One file for each area; a file registers its checks by being here."""
