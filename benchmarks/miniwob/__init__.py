"""MiniWoB++: 130 pages, solved by oracles through the browser surface."""
