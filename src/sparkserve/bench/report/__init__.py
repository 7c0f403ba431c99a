"""A bench run for people: one page of HTML, Markdown, or JSON, made of result files and published tables."""
