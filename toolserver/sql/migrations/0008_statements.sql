-- Statements: what happened to one account, in its order, without reading the accounts of others.

CREATE INDEX reservation_of_account ON reservation(account, transfer);
CREATE INDEX transfer_to_buyer ON transfer(credit, seq) WHERE credit > 3;    -- purchases, grants and reversals: not one a call
CREATE INDEX transfer_taken_back ON transfer(debit, seq) WHERE credit = 1;
