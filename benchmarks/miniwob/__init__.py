"""MiniWoB++: its 130 pages, driven by the browser surface and solved by oracles."""
