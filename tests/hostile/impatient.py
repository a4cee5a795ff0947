"""`python -m tests.hostile.impatient serve …`: toolserver that looks after payments every second, not every minute.

Only the waits between two looks differ. What is looked at, and when it is old enough, is as it is.
"""

from toolserver.cli.main import main
from toolserver.money.purchases.chain import reorg_watch
from toolserver.money.x402 import finality, settlement

if __name__ == "__main__":
    reorg_watch.LOOK_S = reorg_watch.COMPARE_S = finality.COMPARE_S = settlement.SWEEP_S = 1.0
    main()
