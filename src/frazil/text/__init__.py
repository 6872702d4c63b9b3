"""Text that people write: one lexer of Spark SQL, cursors over its tokens, literals, and places for errors."""
