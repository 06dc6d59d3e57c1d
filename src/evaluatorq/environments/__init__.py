"""Tools and the state behind them."""
