"""`python -m tests.hostile.impatient serve …`: toolserver that looks after payments every second, not every minute.

Only the waits between two looks differ. What is looked at, and when it is old enough, is as it is.
"""

from toolserver.cli.main import main
from toolserver.money.purchases import agreement_watch, reorg_watch
from toolserver.money.x402 import finality, settlement_sweep

if __name__ == "__main__":
    for module in (agreement_watch, reorg_watch, finality, settlement_sweep):
        module.LOOK_S = 1.0  # type: ignore[attr-defined]
    main()
